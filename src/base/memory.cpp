// Everything is read from /proc and the cgroup file systems, so that tests can substitute directory trees of their own. A file that is
// missing or holds no number imposes no bound.
#include "base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/processor_use.h"

namespace starling {
namespace {

constexpr int64_t kUnknown = int64_t{1} << 30;

// Returns the number after `key` at the beginning of a line; numbers out of range and words ("max", "unlimited") mean no bound.
std::optional<int64_t> number_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    if (int64_t value = 0; rest >> value) return value;
    return std::nullopt;
  }
  return std::nullopt;
}

std::string mebibytes(int64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

class Bounds {
 public:
  explicit Bounds(std::string root) : root_(std::move(root)) {
    while (root_.ends_with('/')) root_.pop_back();
  }

  UsableMemory smallest() {
    const std::optional<int64_t> free_kib = number_of(root_ + "/proc/meminfo", "MemAvailable:");
    if (free_kib) {
      found_ = true;
      smallest_ = {*free_kib << 10, ""};
    }
    cgroups();
    process_limit("Max address space", "VmSize:", "address space (ulimit -v)");
    process_limit("Max data size", "VmData:", "data (ulimit -d)");
    return found_ ? smallest_ : UsableMemory{kUnknown, ""};
  }

 private:
  void bound(int64_t bytes, const std::string& limit, bool addresses = false) {
    bytes = std::max<int64_t>(bytes, 0);
    if (found_ && bytes >= smallest_.bytes) return;
    found_ = true;
    smallest_ = {bytes, limit, addresses};
  }

  // A line of /proc/self/limits: name, soft limit, hard limit, unit.
  void process_limit(const char* line, const char* used_line, const char* name) {
    const std::optional<int64_t> limit = number_of(root_ + "/proc/self/limits", line);
    const std::optional<int64_t> used = number_of(root_ + "/proc/self/status", used_line);
    if (limit) bound(*limit - used.value_or(0) * 1024, fmt::format("the limit of {} on {}", mebibytes(*limit), name), true);
  }

  void cgroups() {
    for (const CgroupDirectory& each : cgroup_directories("memory", root_))
      group(each.path, each.version == 2 ? Names{"memory.max", "memory.current", "inactive_file "}
                                         : Names{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "});
  }

  struct Names {
    const char *limit, *used, *spare;  // two files, and a line of memory.stat: page cache that is reclaimed first
  };
  void group(const std::string& directory, const Names& names) {
    const std::string files = root_ + directory + "/";
    const std::optional<int64_t> limit = number_of(files + names.limit, "");
    if (!limit) return;
    const int64_t used = number_of(files + names.used, "").value_or(0), spare = number_of(files + "memory.stat", names.spare).value_or(0);
    bound(*limit - std::max<int64_t>(used - spare, 0),
          fmt::format("the cgroup's limit of {} ({}/{})", mebibytes(*limit), directory, names.limit));
  }

  std::string root_;
  bool found_ = false;
  UsableMemory smallest_;
};

}  // namespace

std::string UsableMemory::text() const {
  return limit.empty() ? fmt::format("{}, which is free on this machine", mebibytes(bytes))
                       : fmt::format("{}, which is what {} leaves", mebibytes(bytes), limit);
}

UsableMemory usable_memory(const std::string& root) { return Bounds(root).smallest(); }

PeakMemory peak_memory() {
  rusage own{}, children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  return {int64_t{own.ru_maxrss} * 1024, int64_t{children.ru_maxrss} * 1024};
}

int64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

int64_t resident_bytes(const void* at, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(at), end = begin + static_cast<uintptr_t>(bytes), first = begin / page * page;
  std::vector<unsigned char> pages((end - first + page - 1) / page);
  if (pages.empty() || mincore(reinterpret_cast<void*>(first), end - first, pages.data()) != 0) return bytes;
  const auto touched = std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
  return std::min(bytes, static_cast<int64_t>(touched) * static_cast<int64_t>(page));
}

}  // namespace starling
