// The one seam to the file system. Whatever must survive a crash (checkpoints, model directories, token caches) is written through
// FileSystem, so that tests can put MemoryFileSystem (tests/files/memory_files.h) underneath and fail or crash at any operation.
// Writing is explicit about durability: bytes are safe after sync(), names after sync_directory() of the directory that holds them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace starling {

// Where bytes can be written one after the other.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Writes all the bytes or throws IoError.
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
};

// A file being written. Destroying it without close() gives up the file handle and reports nothing.
class OutputFile : public ByteSink {
 public:
  using ByteSink::write;
  // Returns when the content is on the disk; IoError when that failed (then the file must be thrown away: a second sync proves nothing).
  virtual void sync() = 0;
  virtual void close() = 0;
};

// A file's content as read-only memory, valid as long as this object lives. Nobody may truncate the file meanwhile.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

enum class FileKind { missing, file, directory, other };
struct FileInfo {
  FileKind kind = FileKind::missing;
  uint64_t size = 0;  // bytes; 0 unless a file
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Every operation throws IoError naming the path and the reason unless it says otherwise.

  // Opens a file for writing, empty. `expected_bytes` (0: unknown) only serves the message when the disk is full.
  virtual std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected_bytes = 0) = 0;
  // Hands over the content of a regular file in order, in pieces of at most 1 MiB.
  virtual void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) = 0;
  virtual std::unique_ptr<MappedFile> map(const std::string& path) = 0;
  // Moves `from` to `to` in one indivisible act; a file at `to` is replaced, a directory there must be empty.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Swaps two names in one indivisible act; false, with nothing done, where the file system cannot.
  virtual bool exchange(const std::string& a, const std::string& b) = 0;
  // Removes a file, a symbolic link (not what it points to) or an empty directory; missing is fine. False: a directory with content.
  virtual bool remove(const std::string& path) = 0;
  // Makes one directory in an existing one; false if a directory is already there.
  virtual bool make_directory(const std::string& path) = 0;
  // Returns when all names in the directory are on the disk.
  virtual void sync_directory(const std::string& path) = 0;
  // The names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& path) = 0;
  // Follows symbolic links; a missing path is no error.
  virtual FileInfo info(const std::string& path) = 0;

  bool exists(const std::string& path) { return info(path).kind != FileKind::missing; }
  // The whole content; IoError when it is larger than `limit_bytes`.
  std::string read_file(const std::string& path, uint64_t limit_bytes = uint64_t{1} << 40);
  // Creates or overwrites the file and syncs it. Not indivisible: see replace_file.
  void write_file(const std::string& path, std::string_view content);
  // Like write_file, but after a crash or failure the path holds either the old content or the new, whole.
  void replace_file(const std::string& path, std::string_view content);
  // Makes a directory and whatever is missing above it, durably.
  void make_directories(const std::string& path);
  // Removes a file or a directory with everything in it; missing is fine; symbolic links are not followed.
  void remove_all(const std::string& path);
};

// The operating system's file system.
std::unique_ptr<FileSystem> real_file_system();

// "a/b" + "c" is "a/b/c".
std::string join_path(const std::string& directory, const std::string& name);
// "a/b/c" is in "a/b"; "c" is in "."; "/c" is in "/".
std::string parent_path(const std::string& path);
// The last component: "a/b/c" is "c".
std::string file_name(const std::string& path);

namespace detail {
// Calls `write_some(bytes)` (POSIX write: returns the count, or -1 with errno) until everything is written, again after EINTR;
// returns 0, or the errno it stopped at, with `written` telling how far it came.
int write_fully(std::span<const std::byte> bytes, const std::function<ssize_t(std::span<const std::byte>)>& write_some, size_t& written);
// The IoError for a failed write: the one place that words "the disk is full".
IoError write_error(const std::string& path, int error, uint64_t written, uint64_t expected);
}  // namespace detail

}  // namespace starling
