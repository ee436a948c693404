#include "evaluation/development_text.h"

#include "data/corpus.h"
#include "storage/publication.h"

namespace starling {

DevelopmentText read_development_text(const std::string& source, const std::string& target) {
  DevelopmentText text;
  PairReader reader({source, target, "", 1});
  for (std::string_view from, to; reader.next(from, to);) text.sources.emplace_back(from), text.references.emplace_back(to);
  if (text.sources.empty()) throw DataError(fmt::format("{}: no sentences; name a development text with --source", source));
  return text;
}

std::unique_ptr<FileLock> reserve_model(FileSystem& files, const std::string& directory, const std::string& instead) {
  if (!files.exists(join_path(directory, "manifest.json")))
    throw ConfigError(fmt::format("{}: has no manifest.json, so its files cannot be replaced safely; {}", directory, instead));
  const std::string parent = parent_path(directory);
  const std::string run = file_name(parent) == "checkpoints" ? parent_path(parent) : parent;
  std::unique_ptr<FileLock> lock;
  if (const std::string path = join_path(run, "lock"); files.exists(path)) {
    lock = FileLock::try_acquire(path);
    if (!lock)
      throw ConfigError(
          fmt::format("{}: another process (training or tune-search) uses this directory; wait for it, take a copy of {}, or use --dry-run",
                      run, directory));
  }
  require_updatable(files, directory);
  return lock;
}

}  // namespace starling
