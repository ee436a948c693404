#include "base/user_directories.h"

#include <cstdlib>

namespace starling {

std::string user_directory(const char* variable, const std::string& otherwise) {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  // Relative paths are to be ignored.
  if (const std::string given = value(variable); given.starts_with('/')) return given + "/starling";
  const std::string home = value("HOME");
  return home.empty() ? "" : home + "/" + otherwise + "/starling";
}

}  // namespace starling
