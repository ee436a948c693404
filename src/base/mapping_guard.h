// Protects readers of memory-mapped files that another process truncates. A read beyond a file's new end raises SIGBUS, which kills the
// program; within a guarded mapping it returns zeros instead, and the reader asks the guard afterwards whether the data was real.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace starling {

class MappingGuard {
 public:
  /// Guards a mapping while this object lives; `path` is for the message. If all slots (about 100,000) are taken, the mapping stays
  /// unguarded.
  MappingGuard(std::span<const std::byte> bytes, std::string path);

  /// Throws IoError, naming the file, if any part of the mapping could not be read since the guard was created. Call it after reading.
  void require_whole() const;

 private:
  struct Release {
    void operator()(size_t* slot) const;
  };
  std::string path_;
  std::unique_ptr<size_t, Release> slot_;  // null: unguarded
};

}  // namespace starling
