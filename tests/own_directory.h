// A directory of a test's own: no other process writes into it, and it goes with what uses it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace starling {

class OwnDirectory {
 public:
  OwnDirectory() : path_((std::filesystem::temp_directory_path() / "starling-test-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw std::runtime_error("a test's directory " + path_ + " cannot be made");
  }
  ~OwnDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnDirectory(const OwnDirectory&) = delete;
  OwnDirectory& operator=(const OwnDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace starling
