#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <vector>

#include "autograd/parameters.h"
#include "backend/meta.h"
#include "base/files.h"
#include "base/system_reason.h"
#include "base/this_host.h"
#include "doctor/doctor.h"
#include "models/model.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1 << 20;
constexpr int kBlocks = 64, kBlocksSynced = 8, kSyncs = 15;
constexpr double kWriteSeconds = 8, kSyncSeconds = 4;  // after which a slow disk has told enough
constexpr double kSlow = 50e6;                         // bytes/s
constexpr double kSlowSync = 0.2;                      // seconds
constexpr int64_t kLittleRoom = int64_t{1} << 30;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string nearest_existing(const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory.empty() ? "." : directory, error).lexically_normal();
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  return path.string();
}

// A file that is gone when this ends.
class Trial {
 public:
  explicit Trial(std::string path) : path_(std::move(path)), file_(open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)) {}
  ~Trial() {
    if (file_ < 0) return;
    close(file_);
    unlink(path_.c_str());
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  bool open_failed() const { return file_ < 0; }
  bool write(const std::vector<char>& bytes) const {
    return ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  bool sync() const { return fsync(file_) == 0; }

 private:
  std::string path_;
  int file_;
};

std::string mib(int64_t bytes) {
  return bytes >= int64_t{10} << 30 ? fmt::format("{} GiB", bytes >> 30) : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

int64_t checkpoint_bytes(const Config& config) {
  MetaBackend meta(DType::f32, DType::f32);
  const int64_t size = config.vocab.training.size;
  const auto model = declare_model(config.model, {size, size}, meta);
  const OptimizerOptions& o = config.train.optimizer;
  const int64_t states = traits_of(o.optimizer).states() + (o.ema > 0 ? 1 : 0);
  return model->parameters().declared_count() * (1 + states) * static_cast<int64_t>(sizeof(float));
}

Examined examine_disk(const std::string& directory, int64_t bytes, int64_t checkpoints, const std::string& key) {
  const std::string there = nearest_existing(directory);
  Examined disk{fmt::format("disk of {}", there), {}};
  const auto add = [&](Level level, std::string what, std::string mend = "") {
    disk.findings.push_back({level, std::move(what), std::move(mend)});
  };
  struct statvfs info {};
  if (statvfs(there.c_str(), &info) == 0) {
    const auto free = static_cast<int64_t>(info.f_bavail * info.f_frsize), needed = bytes * (checkpoints + 2);
    const std::string what = bytes > 0 ? fmt::format("room: {} free; {} checkpoints of {}, the best and one being written take {}",
                                                     mib(free), checkpoints, mib(bytes), mib(needed))
                                       : fmt::format("room: {} free", mib(free));
    if (bytes > 0 && free < needed)
      add(Level::problem, what, fmt::format("make room, keep fewer checkpoints (checkpoint.keep), or write elsewhere ({})", key));
    else if (free < kLittleRoom)
      add(Level::note, what, "make room: a run goes on when its disk is full, but saves nothing");
    else
      add(Level::fine, what);
    if (info.f_files > 0 && info.f_favail < 1000)
      add(Level::problem, fmt::format("files: only {} more fit", info.f_favail), "remove small files");
  }
  const Trial trial(fmt::format("{}/.starling-doctor-{}-{}", there, this_host(), getpid()));  // hosts may share the disk
  if (trial.open_failed()) {
    add(Level::problem, fmt::format("writing: {}", system_reason(errno)), fmt::format("write elsewhere ({}), or change the owner", key));
    return disk;
  }
  const std::vector<char> block(kBlock, 'x');
  double start = seconds();
  bool whole = true;
  int blocks = 0;
  while (blocks < kBlocks && whole && seconds() - start < kWriteSeconds) {
    whole = trial.write(block);
    if (++blocks % kBlocksSynced == 0) whole = whole && trial.sync();
  }
  if (!whole || !trial.sync()) {
    add(Level::problem, fmt::format("writing {} MiB: {}", kBlocks, system_reason(errno)), "make room, raise the quota, or write elsewhere");
    return disk;
  }
  const double speed = static_cast<double>(kBlock) * blocks / (seconds() - start);
  const std::string fast = fmt::format("speed: {:.0f} MB/s, written and synced", speed / 1e6);
  if (speed < kSlow)
    add(Level::note, fast,
        bytes > 0 ? fmt::format("a checkpoint takes {:.0f} s; a local disk is faster", static_cast<double>(bytes) / speed)
                  : "checkpoints take long; a local disk is faster");
  else
    add(Level::fine, fast);
  std::vector<double> syncs;
  const std::vector<char> little(4096, 'x');
  for (const double begin = seconds(); syncs.size() < kSyncs && seconds() - begin < kSyncSeconds;) {
    start = seconds();
    if (!trial.write(little) || !trial.sync()) break;
    syncs.push_back(seconds() - start);
  }
  if (!syncs.empty()) {
    std::nth_element(syncs.begin(), syncs.begin() + static_cast<std::ptrdiff_t>(syncs.size() / 2), syncs.end());
    const double median = syncs[syncs.size() / 2];
    add(median > kSlowSync ? Level::note : Level::fine, fmt::format("fsync: {:.1f} ms in the median", 1e3 * median),
        median > kSlowSync ? "each checkpoint needs about ten of them; a local disk is faster" : "");
  }
  return disk;
}

std::vector<Examined> examine_disks(const Config& config) {
  const int64_t bytes = checkpoint_bytes(config), keep = config.checkpoint.keep;
  std::vector<Examined> disks{examine_disk(config.train.output, bytes, keep)};
  const std::string key = "checkpoint.second-directory", &second = config.checkpoint.second_directory;
  if (second.empty()) return disks;
  disks.push_back(examine_disk(second, bytes, keep, key));
  disks[1].topic += fmt::format(" ({})", key);
  struct stat one {};
  struct stat other {};
  if (stat(nearest_existing(config.train.output).c_str(), &one) == 0 && stat(nearest_existing(second).c_str(), &other) == 0 &&
      one.st_dev == other.st_dev) {
    disks[1].findings.push_back(
        {Level::note, "the same disk as train.output: both are lost at once", fmt::format("name a directory on another disk ({})", key)});
  }
  return disks;
}

}  // namespace starling
