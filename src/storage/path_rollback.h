// Paths that a command makes on its way: taken back when it fails, so that a refused command leaves nothing behind. What took long to make
// stays where nothing was wrong with it: a full disk or a lost machine is no reason to begin at zero.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "base/files.h"

namespace starling {

// Whether an error says that something else is meant (ConfigError, DataError): what was made for it is of no use. Want of threads or memory
// (ResourceError) says no such thing.
bool is_refusal(const std::exception& error);

class PathRollback {
 public:
  explicit PathRollback(FileSystem& files) : files_(files) {}
  // Unless kept: removes, last one first, what was noted, with everything in it, and the directories above that were missing too, if they
  // are empty. Errors are ignored; the one that brought us here matters more.
  ~PathRollback();
  PathRollback(const PathRollback&) = delete;
  PathRollback& operator=(const PathRollback&) = delete;

  // Before the path is made: notes it, and what is missing above it; nothing if it is there already.
  void note(const std::string& path);
  // The same for what takes long to make and can be used again though it is not finished.
  void note_work(const std::string& path);
  // What was noted so far stays.
  void keep() { paths_.clear(); }
  // What note_work noted stays, unless it is empty, or unless the error is that of a refusal.
  void keep_work_unless_refused(const std::exception& error);

 private:
  struct Path {
    std::string path;
    bool whole;  // with everything in it
    bool work = false;
  };
  bool empty(const std::string& path) const;

  FileSystem& files_;
  std::vector<Path> paths_;
};

}  // namespace starling
