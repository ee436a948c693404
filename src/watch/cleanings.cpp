#include "watch/cleanings.h"

#include "storage/publication.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPage = "report.html";

}  // namespace

bool is_cleaning(const fs::path& directory) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(directory, error))) return false;  // it may lead to what only the watcher may read
  const auto has = [&](const char* name) { return is_regular_file((directory / name).string()); };
  if (directory.filename().string().starts_with(kAsidePrefix)) return fs::is_directory(directory / "judged", error);
  return has(kPage) && has("clean.json");
}

fs::path aside_of(const fs::path& asked) {
  const fs::path directory = asked.has_filename() ? asked : asked.parent_path();
  return fs::path(aside_path(directory.string())).lexically_normal();
}

bool WatchedCleaning::under_way() const { return fs::path(directory_).filename().string().starts_with(kAsidePrefix); }

void WatchedCleaning::refresh(Look& look, uint64_t most) {
  const auto file = RunFile::open(directory_, kPage);
  if (!file || file->mark().size > most) {
    page_ = nullptr;
    mark_.clear();
    return;
  }
  if (file->mark().text() == mark_) return;
  std::string bytes = file->read(0, most, look);
  if (bytes.size() < file->mark().size) return;  // it is being written
  mark_ = file->mark().text();
  page_ = std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace starling
