#include "watch/cleanings.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostPageBytes = uint64_t{32} << 20;
constexpr const char *kPage = "report.html", *kAside = ".tmp-";

}  // namespace

bool is_cleaning(const fs::path& directory) {
  std::error_code error;
  const auto has = [&](const char* name) { return is_regular_file((directory / name).string()); };
  return has(kPage) && (has("clean.json") || fs::is_directory(directory / "judged", error));
}

fs::path aside_of(const fs::path& directory) { return directory.parent_path() / (kAside + directory.filename().string()); }

bool WatchedCleaning::under_way() const { return fs::path(directory_).filename().string().starts_with(kAside); }

void WatchedCleaning::refresh(Look& look) {
  const auto file = RunFile::open(directory_, kPage);
  if (!file || file->mark().size > kMostPageBytes) {
    page_ = nullptr;
    mark_.clear();
    return;
  }
  if (file->mark().text() == mark_) return;
  std::string bytes = file->read(0, kMostPageBytes, look);
  if (bytes.size() < file->mark().size) return;  // it is being written
  mark_ = file->mark().text();
  page_ = std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace starling
