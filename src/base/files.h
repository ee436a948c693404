// The one interface to the file system. Whatever must survive a crash (checkpoints, model directories, token caches) is written through
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

// A sequential sink of bytes.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Writes all the bytes or throws IoError.
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
};

// A file being written. Destroying it without close() releases the file handle and reports no error.
class OutputFile : public ByteSink {
 public:
  using ByteSink::write;
  // Returns once the content is on disk. Throws IoError on failure; the file must then be discarded, since a second sync proves nothing.
  virtual void sync() = 0;
  virtual void close() = 0;
};

// A file's content as read-only memory, valid as long as this object lives. The file must not be truncated meanwhile.
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

  // Creates a file, or empties an existing one, for writing. `expected_bytes` (0: unknown) only appears in the message for a full disk.
  virtual std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected_bytes = 0) = 0;
  // Passes the content of a regular file to `take` in order, in pieces of at most 1 MiB.
  virtual void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) = 0;
  virtual std::unique_ptr<MappedFile> map(const std::string& path) = 0;
  // Atomically renames `from` to `to`; a file at `to` is replaced, a directory there must be empty.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Atomically swaps two names. Returns false, and changes nothing, if the file system does not support that.
  virtual bool exchange(const std::string& a, const std::string& b) = 0;
  // Removes a file, a symbolic link (not its target) or an empty directory; a missing path is not an error. Returns false for a directory
  // that is not empty.
  virtual bool remove(const std::string& path) = 0;
  // Creates one directory in an existing one; returns false if it already exists.
  virtual bool make_directory(const std::string& path) = 0;
  // Returns once all names in the directory are on disk.
  virtual void sync_directory(const std::string& path) = 0;
  // Returns the names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& path) = 0;
  // Follows symbolic links; a missing path is not an error.
  virtual FileInfo info(const std::string& path) = 0;

  bool exists(const std::string& path) { return info(path).kind != FileKind::missing; }
  // Returns the whole content; throws IoError if it is larger than `limit_bytes`.
  std::string read_file(const std::string& path, uint64_t limit_bytes = uint64_t{1} << 40);
  // Creates or overwrites the file and syncs it. Not atomic: see replace_file.
  void write_file(const std::string& path, std::string_view content);
  // Like write_file, but after a crash or failure the path holds either the old content or the new, whole.
  void replace_file(const std::string& path, std::string_view content);
  // Creates a directory and its missing parents, durably.
  void make_directories(const std::string& path);
  // Removes a file, or a directory with everything in it. A missing path is not an error; symbolic links are not followed.
  void remove_all(const std::string& path);
};

// The operating system's file system.
std::unique_ptr<FileSystem> real_file_system();

// Joins a directory and a name: "a/b" and "c" give "a/b/c".
std::string join_path(const std::string& directory, const std::string& name);
// Returns the parent directory: "a/b" of "a/b/c", "." of "c", "/" of "/c".
std::string parent_path(const std::string& path);
// Returns the last component: "c" of "a/b/c".
std::string file_name(const std::string& path);

namespace detail {
// Calls `write_some(bytes)` (POSIX write: returns the count, or -1 with errno) until everything is written, retrying after EINTR.
// Returns 0, or the errno that stopped it, and sets `written` to the bytes written.
int write_fully(std::span<const std::byte> bytes, const std::function<ssize_t(std::span<const std::byte>)>& write_some, size_t& written);
// Builds the IoError for a failed write: the only place that words "the disk is full".
IoError write_error(const std::string& path, int error, uint64_t written, uint64_t expected);
}  // namespace detail

}  // namespace starling
