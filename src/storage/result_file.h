// The output of a verb: a file, or standard output for "-". A file is written beside its final path and renamed when it is complete, so a
// failure leaves an earlier file untouched. It is opened with the first line, so a command that is refused before then leaves nothing
// behind.
#pragma once

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "storage/outputs.h"

namespace starling {

class ResultFile {
 public:
  explicit ResultFile(const std::string& path, std::ostream& standard_output = std::cout);
  // Throws ConfigError if the result would overwrite one of these inputs, or damage a run, a race or a model. The path is
  // that of --output.
  void refuse(const std::vector<NamedPath>& inputs) const;
  // Returns the path that is written until the result is complete, once there is a line. "-" and devices are written directly.
  const std::string& written_path() const { return written_; }
  // Returns the stream for the next part, which flush() ends. Throws IoError if it cannot be opened.
  std::ostream& stream();
  // Throws IoError naming the number of lines written if the disk or the reader did not accept them.
  void flush(int64_t lines);
  // Completes the file, which is empty if there were no lines. Throws IoError as above.
  void close();
  // Returns where the `what` of the first `lines` lines are when no more can follow, as the end of a message; "" if they are not in a file.
  std::string left(const char* what, int64_t lines) const;
  // Returns a message for a StopNote: what a signal leaves of the lines, and how to continue.
  std::string stopped(const char* what, int64_t lines) const;

 private:
  std::string path_, written_;
  std::ostream& standard_output_;
  bool aside_ = false;
  std::ofstream file_;
};

}  // namespace starling
