// A lock file: held by one process at a time and released when that process ends, however it ends. The process that owns a run directory
// holds <run>/lock.
#pragma once

#include <memory>
#include <string>

namespace starling {

class FileLock {
 public:
  // Creates the file if it is missing. Returns null if another process holds the lock; throws IoError if the file cannot be opened or
  // locked.
  static std::unique_ptr<FileLock> try_acquire(const std::string& path);
  ~FileLock();
  // Returns whether the path still names the locked file. False once that file was removed, alone or with its directory, or recreated:
  // another process may then hold a lock of the same name.
  bool in_place() const;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

}  // namespace starling
