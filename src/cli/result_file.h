// Where a verb's lines go: a file, or standard output where that is "-". A file is written beside and renamed when it is complete, so that
// a failure leaves an earlier one as it was; it is opened with the first line, so that what is refused before that leaves nothing.
#pragma once

#include <cstdint>
#include <fstream>
#include <ostream>
#include <string>

namespace starling {

class ResultFile {
 public:
  explicit ResultFile(const std::string& path);
  // The file that is written until it is complete, once there is a line; "-" and devices are written themselves.
  const std::string& written_path() const { return written_; }
  // To write a part to, which flush() ends; IoError if it cannot be opened.
  std::ostream& stream();
  // IoError, naming how many lines were written, if the disk or the reader did not take them.
  void flush(int64_t lines);
  // The file is complete; of no lines it is empty. IoError as above.
  void close();
  // Where the `what` of so many lines are when no more can come, as the rest of a message; "" if there is no file of them.
  std::string left(const char* what, int64_t lines) const;
  // What a signal leaves of them, with how to go on: for a StopNote.
  std::string stopped(const char* what, int64_t lines) const;

 private:
  std::string path_, written_;
  bool aside_ = false;
  std::ofstream file_;
};

}  // namespace starling
