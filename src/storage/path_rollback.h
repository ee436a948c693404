// Removes the paths that a command created if it fails, so that a refused command leaves nothing behind. The results of long work are kept
// if they are still usable: a full disk or a lost machine is no reason to start from scratch.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "base/files.h"

namespace starling {

// Returns whether an error means that the request itself was wrong (ConfigError, DataError), so that work done for it is useless. A lack
// of threads or memory (ResourceError) does not mean that.
bool is_refusal(const std::exception& error);

class PathRollback {
 public:
  explicit PathRollback(FileSystem& files) : files_(files) {}
  // Removes the noted paths that were not kept, in reverse order and with their content, and those parent directories that were missing
  // too, if they are empty. Ignores errors, since the one that led here matters more.
  ~PathRollback();
  PathRollback(const PathRollback&) = delete;
  PathRollback& operator=(const PathRollback&) = delete;

  // Call before creating the path: notes it and its missing parents; does nothing if it already exists.
  void note(const std::string& path);
  // The same for a path that takes long to create and can be reused even if unfinished.
  void note_work(const std::string& path);
  // Keeps everything noted so far.
  void keep() { paths_.clear(); }
  // Keeps the paths noted by note_work, unless they are empty or the error is a refusal.
  void keep_work_unless_refused(const std::exception& error);

 private:
  struct Path {
    std::string path;
    bool whole;  // remove with everything in it
    bool work = false;
  };
  bool empty(const std::string& path) const;

  FileSystem& files_;
  std::vector<Path> paths_;
};

}  // namespace starling
