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
  // Whether the path still names the file that is locked. False once it was removed, also with its directory, or made again: then another
  // process may hold a lock of the same name.
  bool in_place() const;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

}  // namespace starling
