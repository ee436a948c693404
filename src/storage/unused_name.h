// Names for what is set aside.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/files.h"

namespace starling {

/// Returns `path` if nothing is there, or else the first unused one of path-2, path-3 and so on.
inline std::string unused_name(FileSystem& files, const std::string& path) {
  std::string name = path;
  for (int n = 2; files.exists(name); ++n) name = fmt::format("{}-{}", path, n);
  return name;
}

}  // namespace starling
