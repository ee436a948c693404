// A directory that any number of processes, also of several machines that share the file system, make together in numbered parts. While it
// is made it is `.tmp-<name>` beside its place; it comes into its place whole, once. A part belongs to the process that holds its lock,
// which ends with the process, so that another one takes what a killed one has left.
//
//   .tmp-DIR/job                what is made; only processes with the same job join
//   .tmp-DIR/parts/000012.lock  held by the process that makes it
//   .tmp-DIR/parts/000012.done  there once its files are whole: a note about the part, of the caller's
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/lock.h"

namespace starling {

class SharedParts {
 public:
  // Begins the directory, or joins those who make it. Throws ConfigError if something else is there, or is being made there, of another job
  // (a text of lines, kept beside the result as well).
  SharedParts(FileSystem& files, std::string directory, const std::string& job);

  const std::string& directory() const { return directory_; }
  // Returns whether the directory is in its place. From then on nothing else may be called.
  bool complete() const;
  // Returns where a file is written.
  std::string path(const std::string& name) const { return join_path(aside_, name); }
  std::string path(int64_t part, const std::string& suffix) const;
  // Returns where a file of a part is written until finish().
  std::string unfinished(int64_t part, const std::string& suffix) const;

  // Begins to make a part. Returns null if it is done already, or if another process makes it; the part is this process's as long as the
  // lock lives.
  std::unique_ptr<FileLock> begin(int64_t part);
  bool done(int64_t part) const;
  // Says that the files of a part that was begun are whole.
  void finish(int64_t part, const std::vector<std::string>& suffixes, const std::string& note);
  std::string note(int64_t part) const;

  // Appends the files of all parts to one, in their order.
  void join(int64_t parts, const std::string& suffix, const std::string& name);
  // Returns null if another process puts the parts together, or has done so.
  std::unique_ptr<FileLock> begin_whole();
  // Moves the directory, without its parts, into its place.
  void publish();

 private:
  bool is_whole(const std::string& job);
  std::unique_ptr<FileLock> lock(const std::string& path) const;  // null also once the directory is complete
  void tidy();
  FileSystem& files_;
  const std::string directory_, aside_;
};

}  // namespace starling
