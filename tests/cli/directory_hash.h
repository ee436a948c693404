// A directory as one number, for tests that a refused command has changed nothing on disk: equal before and after means the same names,
// types, contents and link targets; times and owners do not count.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/sha256.h"

namespace starling {

// SHA-256, hexadecimal, over the sorted relative paths with type and content of everything below `root`; "missing" if there is no such
// path. Symbolic links count by what they say and are not followed.
inline std::string directory_hash(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  if (!fs::exists(fs::symlink_status(root))) return "missing";
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::string facts;  // one record an entry; lengths keep names and contents apart
  for (const fs::path& path : paths) {
    const fs::file_status status = fs::symlink_status(path);
    std::string content;
    if (fs::is_symlink(status)) {
      content = fs::read_symlink(path).string();
    } else if (fs::is_regular_file(status)) {
      std::ifstream file(path, std::ios::binary);
      content = file ? sha256_hex(std::string((std::istreambuf_iterator<char>(file)), {})) : "unreadable";
    }
    const std::string name = path.lexically_relative(root).string();
    facts += std::to_string(static_cast<int>(status.type())) + " " + std::to_string(name.size()) + " " + name + " " +
             std::to_string(content.size()) + " " + content + "\n";
  }
  return sha256_hex(facts);
}

}  // namespace starling
