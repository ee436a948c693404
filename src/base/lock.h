// A lock file: held by one process at a time and free again when that process ends, however it ends. What owns a run directory holds
// <run>/lock.
#pragma once

#include <memory>
#include <string>

namespace starling {

class FileLock {
 public:
  // Makes the file if it is missing. Null when another process holds the lock; IoError when the file cannot be opened or locked.
  static std::unique_ptr<FileLock> try_acquire(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace starling
