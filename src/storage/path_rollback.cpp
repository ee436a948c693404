#include "storage/path_rollback.h"

#include "base/resource_error.h"

namespace starling {

bool is_refusal(const std::exception& error) {
  if (dynamic_cast<const ResourceError*>(&error)) return false;
  return dynamic_cast<const ConfigError*>(&error) || dynamic_cast<const DataError*>(&error);
}

PathRollback::~PathRollback() {
  for (auto made = paths_.rbegin(); made != paths_.rend(); ++made) {
    try {
      if (made->whole)
        files_.remove_all(made->path);
      else
        files_.remove(made->path);
    } catch (const IoError&) {
    }
  }
}

void PathRollback::note(const std::string& path) {
  if (files_.exists(path)) return;
  std::vector<Path> above;
  for (std::string up = parent_path(path); !files_.exists(up); up = parent_path(up)) above.push_back({up, false});
  paths_.insert(paths_.end(), above.rbegin(), above.rend());
  paths_.push_back({path, true});
}

void PathRollback::note_work(const std::string& path) {
  const size_t before = paths_.size();
  note(path);
  if (paths_.size() > before) paths_.back().work = true;
}

void PathRollback::keep_work_unless_refused(const std::exception& error) {
  if (is_refusal(error)) return;
  std::erase_if(paths_, [&](const Path& made) { return made.work && !empty(made.path); });
}

bool PathRollback::empty(const std::string& path) const {
  try {
    const FileInfo info = files_.info(path);
    return info.kind == FileKind::directory ? files_.list(path).empty() : info.size == 0;
  } catch (const IoError&) {
    return false;
  }
}

}  // namespace starling
