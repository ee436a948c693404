#include "storage/shared_parts.h"

#include <chrono>
#include <thread>

#include "base/quotes.h"
#include "storage/publication.h"

namespace starling {
namespace {

constexpr const char *kJob = "job", *kParts = "parts", *kWholeLock = "whole.lock", *kNew = ".new";

// The lock of what takes a moment: the beginning and the end.
class BriefLock {
 public:
  BriefLock(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
    constexpr int kTries = 3000;
    for (int i = 0; i < kTries; ++i) {
      if ((lock_ = FileLock::try_acquire(path_))) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    throw IoError(fmt::format("{}: another process has held this for a minute; see whether it hangs, and start again", path_));
  }
  ~BriefLock() {
    try {
      files_.remove(path_);
    } catch (const Error&) {  // it holds nobody up
    }
  }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

 private:
  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace

SharedParts::SharedParts(FileSystem& files, std::string directory, const std::string& job)
    : files_(files), directory_(directory_to_make(files, std::move(directory))), aside_(aside_path(directory_)) {
  if (is_whole(job)) return;
  const BriefLock lock(files, aside_ + ".lock");
  if (is_whole(job)) return;
  if (files.exists(aside_)) {
    if (!files.exists(path(kJob)))
      throw ConfigError(fmt::format("{}: is in the way, and was not left by an earlier start; move it elsewhere", printable(aside_)));
    if (files.read_file(path(kJob)) != job)
      throw ConfigError(
          fmt::format("{}: was begun with other text (its path, size and time count), another model or other options; use those again, "
                      "remove {} to begin anew, or name another directory",
                      printable(directory_), printable(aside_)));
  } else {
    const std::string fresh = aside_ + ".new";  // of a start that ended here
    files.remove_all(fresh);
    files.make_directories(join_path(fresh, kParts));
    files.write_file(join_path(fresh, kJob), job);
    files.rename(fresh, aside_);
    files.sync_directory(parent_path(aside_));
  }
}

bool SharedParts::is_whole(const std::string& job) {
  if (!files_.exists(directory_)) return false;
  const std::string made = join_path(directory_, kJob);
  if (!files_.exists(made) || files_.read_file(made) != job)
    throw ConfigError(
        fmt::format("{}: exists already, and was not made by this command; name another directory, or remove it", printable(directory_)));
  tidy();  // after a process that was ended right after the last step
  return true;
}

bool SharedParts::complete() const { return files_.exists(directory_); }

std::string SharedParts::path(int64_t part, const std::string& suffix) const {
  return join_path(join_path(aside_, kParts), fmt::format("{:06}.{}", part, suffix));
}

bool SharedParts::done(int64_t part) const { return files_.exists(path(part, "done")); }

std::unique_ptr<FileLock> SharedParts::lock(const std::string& path) const {
  try {
    return FileLock::try_acquire(path);
  } catch (const IoError&) {  // the directory has moved into its place
    if (complete()) return nullptr;
    throw;
  }
}

std::unique_ptr<FileLock> SharedParts::begin(int64_t part) {
  if (done(part)) return nullptr;
  auto mine = lock(path(part, "lock"));
  if (mine && done(part)) mine.reset();
  return mine;
}

void SharedParts::finish(int64_t part, const std::vector<std::string>& suffixes, const std::string& note) {
  for (const std::string& suffix : suffixes) files_.rename(path(part, suffix + kNew), path(part, suffix));
  files_.replace_file(path(part, "done"), note);
}

std::string SharedParts::unfinished(int64_t part, const std::string& suffix) const { return path(part, suffix + kNew); }

std::string SharedParts::note(int64_t part) const { return files_.read_file(path(part, "done"), 4096); }

void SharedParts::join(int64_t parts, const std::string& suffix, const std::string& name) {
  const auto file = files_.create(path(name));
  for (int64_t part = 0; part < parts; ++part)
    files_.read_pieces(path(part, suffix), [&](std::span<const std::byte> bytes) { file->write(bytes); });
  file->sync();
  file->close();
}

std::unique_ptr<FileLock> SharedParts::begin_whole() { return lock(path(kWholeLock)); }

void SharedParts::publish() {
  const BriefLock lock(files_, aside_ + ".lock");  // so that nobody begins anew in between
  files_.sync_directory(aside_);
  files_.rename(aside_, directory_);
  files_.sync_directory(parent_path(directory_));
  tidy();
}

// What only those who make it need.
void SharedParts::tidy() {
  try {
    files_.remove(join_path(directory_, kWholeLock));
    files_.remove_all(join_path(directory_, kParts));
    files_.remove(aside_ + ".lock");
  } catch (const Error&) {  // another process does the same, or the disk cannot be written any more
  }
}

}  // namespace starling
