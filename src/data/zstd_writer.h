// Writes text as a Zstandard archive, which LineReader reads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace starling {

class ZstdWriter {
 public:
  // Creates the file, or empties an existing one. `level`: of compression, 1 for the fastest. Throws IoError, as the others do.
  ZstdWriter(FileSystem& files, const std::string& path, int level = 3);
  ~ZstdWriter();
  ZstdWriter(ZstdWriter&&) noexcept;
  void write(std::string_view text);
  // Completes the archive; the file is then on disk.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace starling
