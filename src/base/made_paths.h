// Paths that a command makes on its way: taken back when it fails, so that a refused command leaves nothing behind.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"

namespace starling {

class MadePaths {
 public:
  explicit MadePaths(FileSystem& files) : files_(files) {}
  // Unless kept: removes, last one first, what was noted, with everything in it, and the directories above that were missing too, if they
  // are empty. Errors are ignored; the one that brought us here matters more.
  ~MadePaths();
  MadePaths(const MadePaths&) = delete;
  MadePaths& operator=(const MadePaths&) = delete;

  // Before the path is made: notes it, and what is missing above it; nothing if it is there already.
  void note(const std::string& path);
  // What was noted so far stays.
  void keep() { paths_.clear(); }

 private:
  struct Path {
    std::string path;
    bool whole;  // with everything in it
  };
  FileSystem& files_;
  std::vector<Path> paths_;
};

}  // namespace starling
