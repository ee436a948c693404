// FileSystem over POSIX calls. Every return value is checked, close() and fsync() included: a full or failing disk often reports its
// error only there. Directory syncs that a file system does not support (EINVAL on some network file systems) are skipped.
#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/system_reason.h"

namespace starling {
namespace {

constexpr size_t piece_bytes = 1 << 20;  // fits the second-level cache, so that hashing and copying a piece touch memory once

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  throw IoError(fmt::format("{}: cannot {}: {}", path, what, system_reason(error)));
}

void require(bool fine, const char* what, const std::string& path) {
  if (!fine) fail(what, path, errno);
}

// An open file handle that closes itself.
class Handle {
 public:
  explicit Handle(int number) : number_(number) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int number;
  do number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (number < 0 && errno == EINTR);
  return number;
}

int fsync_retrying(int number) {
  int result;
  do result = ::fsync(number);
  while (result < 0 && errno == EINTR);
  return result;
}

// A file that is read whole must have an end, so only regular files are accepted. open() would block on a named pipe, hence O_NONBLOCK,
// which regular files ignore.
int open_regular(const std::string& path, uint64_t& size) {
  Handle handle(open_retrying(path, O_RDONLY | O_NONBLOCK));
  require(handle.get() >= 0, "open the file", path);
  struct stat status;
  require(::fstat(handle.get(), &status) == 0, "inspect the file", path);
  if (!S_ISREG(status.st_mode))
    throw IoError(fmt::format("{}: is not a regular file but {}; name a file", path,
                              S_ISDIR(status.st_mode)    ? "a directory"
                              : S_ISFIFO(status.st_mode) ? "a pipe"
                                                         : "a device"));
  size = static_cast<uint64_t>(status.st_size);
  return handle.release();
}

class PosixOutputFile final : public OutputFile {
 public:
  PosixOutputFile(const std::string& path, uint64_t expected_bytes)
      : path_(path), expected_(expected_bytes), handle_(open_retrying(path, O_WRONLY | O_CREAT | O_TRUNC, 0666)) {
    require(handle_.get() >= 0, "create the file", path_);
  }

  void write(std::span<const std::byte> bytes) override {
    size_t written = 0;
    const auto write_some = [&](std::span<const std::byte> rest) { return ::write(handle_.get(), rest.data(), rest.size()); };
    const int error = detail::write_fully(bytes, write_some, written);
    if (error != 0) throw detail::write_error(path_, error, written_ + written, std::max<uint64_t>(expected_, written_ + bytes.size()));
    written_ += written;
  }

  void sync() override {
    if (fsync_retrying(handle_.get()) != 0) throw detail::write_error(path_, errno, written_, std::max(expected_, written_));
  }

  void close() override {  // Linux releases the handle even when it reports EINTR, so close is never repeated
    if (::close(handle_.release()) != 0 && errno != EINTR) {
      throw detail::write_error(path_, errno, written_, std::max(expected_, written_));
    }
  }

 private:
  std::string path_;
  uint64_t expected_, written_ = 0;
  Handle handle_;
};

class PosixMappedFile final : public MappedFile {
 public:
  explicit PosixMappedFile(const std::string& path) {
    const Handle handle(open_regular(path, size_));
    if (size_ == 0) return;
    address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle.get(), 0);
    require(address_ != MAP_FAILED, "map the file into memory", path);
  }
  ~PosixMappedFile() override {
    if (size_ > 0) ::munmap(address_, size_);
  }
  std::span<const std::byte> bytes() const override { return {static_cast<const std::byte*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  uint64_t size_ = 0;
};

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected_bytes) override {
    return std::make_unique<PosixOutputFile>(path, expected_bytes);
  }

  void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) override {
    uint64_t size = 0;
    const Handle handle(open_regular(path, size));
    std::vector<std::byte> piece(piece_bytes);
    for (;;) {
      const ssize_t count = ::read(handle.get(), piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      require(count >= 0, "read the file", path);
      if (count == 0) return;
      take(std::span(piece).first(static_cast<size_t>(count)));
    }
  }

  std::unique_ptr<MappedFile> map(const std::string& path) override { return std::make_unique<PosixMappedFile>(path); }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return;
    const int error = errno;
    fail("rename it to " + to, from, error);
  }

  bool exchange(const std::string& a, const std::string& b) override {
    if (::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
    const int error = errno;
    if (error == EINVAL || error == ENOSYS || error == ENOTSUP) return false;
    fail("exchange it with " + b, a, error);
  }

  bool remove(const std::string& path) override {
    if (std::remove(path.c_str()) == 0 || errno == ENOENT) return true;
    if (errno == ENOTEMPTY || errno == EEXIST) return false;
    fail("remove it", path, errno);
  }

  bool make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return true;
    const int error = errno;
    if (error == EEXIST && info(path).kind == FileKind::directory) return false;
    if (error == EEXIST) throw IoError(fmt::format("{}: a directory is needed here, but a file is in the way; move it", path));
    fail("make the directory", path, error);
  }

  void sync_directory(const std::string& path) override {
    const Handle handle(open_retrying(path, O_RDONLY | O_DIRECTORY));
    require(handle.get() >= 0, "open the directory", path);
    const bool fine = fsync_retrying(handle.get()) == 0 || errno == EINVAL || errno == ENOTSUP;
    require(fine, "sync the directory", path);
  }

  std::vector<std::string> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    require(directory != nullptr, "list the directory", path);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..") names.emplace_back(entry->d_name);
    }
    require(errno == 0, "list the directory", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  FileInfo info(const std::string& path) override {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return {};
      fail("inspect it", path, errno);
    }
    if (S_ISREG(status.st_mode)) return {FileKind::file, static_cast<uint64_t>(status.st_size)};
    return {S_ISDIR(status.st_mode) ? FileKind::directory : FileKind::other, 0};
  }
};

}  // namespace

std::unique_ptr<FileSystem> real_file_system() { return std::make_unique<PosixFileSystem>(); }

namespace {
constexpr uint64_t kMostReserved = uint64_t{16} << 30;  // files with holes may say more
}

std::string FileSystem::read_file(const std::string& path, uint64_t limit_bytes) {
  std::string content;
  content.reserve(std::min(info(path).size, std::min(limit_bytes, kMostReserved)));
  read_pieces(path, [&](std::span<const std::byte> piece) {
    if (content.size() + piece.size() > limit_bytes) throw IoError(fmt::format("{}: is larger than {} bytes", path, limit_bytes));
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return content;
}

void FileSystem::write_file(const std::string& path, std::string_view content) {
  const auto file = create(path, content.size());
  file->write(content);
  file->sync();
  file->close();
}

namespace {

void remove_quietly(FileSystem& files, const std::string& path) {
  try {
    files.remove(path);
  } catch (const IoError&) {  // what went wrong before is what matters
  }
}

}  // namespace

void FileSystem::replace_file(const std::string& path, std::string_view content) {
  const std::string parent = parent_path(path), aside = join_path(parent, ".tmp-" + file_name(path));
  try {
    write_file(aside, content);
    rename(aside, path);
  } catch (...) {
    remove_quietly(*this, aside);
    throw;
  }
  sync_directory(parent);
}

void FileSystem::make_directories(const std::string& path) {
  if (info(path).kind == FileKind::directory) return;
  const std::string parent = parent_path(path);
  if (parent != path) make_directories(parent);
  if (make_directory(path)) sync_directory(parent);
}

void FileSystem::remove_all(const std::string& path) {
  if (remove(path)) return;
  for (const std::string& name : list(path)) remove_all(join_path(path, name));
  if (!remove(path)) throw IoError(fmt::format("{}: cannot remove the directory: somebody else is writing into it", path));
}

std::string join_path(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.ends_with('/') ? directory + name : directory + "/" + name;
}

std::string parent_path(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  const size_t last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

std::string file_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "";
  const size_t slash = path.find_last_of('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

int detail::write_fully(std::span<const std::byte> bytes, const std::function<ssize_t(std::span<const std::byte>)>& write_some,
                        size_t& written) {
  written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write_some(bytes.subspan(written));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;  // POSIX never does this for a file; without the check the loop would not end
    written += static_cast<size_t>(count);
  }
  return 0;
}

IoError detail::write_error(const std::string& path, int error, uint64_t written, uint64_t expected) {
  if (error == ENOSPC || error == EDQUOT) {
    return IoError(
        fmt::format("no space left on the disk of {}: needs {} bytes, {} were written; "
                    "free some space or choose another directory",
                    path, expected, written));
  }
  return IoError(fmt::format("{}: writing failed after {} bytes: {}", path, written, system_reason(error)));
}

}  // namespace starling
