#include "base/made_paths.h"

#include <algorithm>

namespace starling {

MadePaths::~MadePaths() {
  for (auto made = paths_.rbegin(); made != paths_.rend(); ++made) {
    try {
      made->whole ? files_.remove_all(made->path) : static_cast<void>(files_.remove(made->path));
    } catch (const IoError&) {
    }
  }
}

void MadePaths::note(const std::string& path) {
  if (files_.exists(path)) return;
  std::vector<Path> above;
  for (std::string up = parent_path(path); !files_.exists(up); up = parent_path(up)) above.push_back({up, false});
  paths_.insert(paths_.end(), above.rbegin(), above.rend());
  paths_.push_back({path, true});
}

}  // namespace starling
