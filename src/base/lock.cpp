// The kernel releases the lock with the last file descriptor; the file itself stays, since removing it would race with others that open it.
#include "base/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/system_reason.h"

namespace starling {

std::unique_ptr<FileLock> FileLock::try_acquire(const std::string& path) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) throw IoError(fmt::format("{}: cannot be opened: {}", path, system_reason(errno)));
    std::unique_ptr<FileLock> lock(new FileLock(descriptor, path));
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      throw IoError(fmt::format("{}: cannot be locked: {}; choose a directory whose file system knows locks", path, std::strerror(errno)));
    }
    if (lock->in_place()) return lock;  // else it was removed between opening and locking
  }
}

bool FileLock::in_place() const {
  struct stat mine {
  }, named{};
  return ::fstat(descriptor_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 && mine.st_dev == named.st_dev &&
         mine.st_ino == named.st_ino;
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace starling
