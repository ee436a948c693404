#include "base/processor_use.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace starling {
namespace {

// Where a cgroup hierarchy is mounted, and which part of it.
struct Mount {
  std::string part, point;
};
// Lines of mountinfo: id, parent, device, root within the file system, mount point, options, optional fields, "-", type, source, options.
std::optional<Mount> mount_of(const std::string& root, std::string_view type, std::string_view option) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, word, found_type, source, options;
    Mount mount;
    words >> skipped >> skipped >> skipped >> mount.part >> mount.point;
    while (words >> word && word != "-") continue;
    words >> found_type >> source >> options;
    if (found_type == type && ("," + options + ",").find(fmt::format(",{},", option)) != std::string::npos) return mount;
  }
  return std::nullopt;
}

// Adds the directories of a group and of all its ancestors that are visible from here. A path outside the mounted part belongs to another
// namespace; the mount point is then the nearest visible ancestor.
void add_groups(std::vector<CgroupDirectory>& found, const std::optional<Mount>& mount, std::string path, int version) {
  if (!mount) return;
  const std::string part = mount->part == "/" ? "" : mount->part;
  const bool inside = path.starts_with(part) && (path.size() == part.size() || path[part.size()] == '/');
  path = inside ? path.substr(part.size()) : "";
  while (path.ends_with('/')) path.pop_back();
  for (;; path.resize(path.find_last_of('/'))) {
    found.push_back({mount->point + path, version});
    if (path.empty()) return;
  }
}

}  // namespace

ProcessorUse processor_use(const std::string& root) {
  ProcessorUse use;
  std::ifstream stat(root + "proc/stat");
  std::string name;
  // Lines "cpu user nice system idle iowait irq softirq steal ...", first for all processors, then for each (proc_stat(5)). Guests are
  // included in user and nice.
  double ticks[8] = {};
  if (!(stat >> name) || name != "cpu") return use;
  for (double& value : ticks) stat >> value;
  constexpr int kIdle = 3, kWaits = 4, kStolen = 7;
  use.idle_s = (ticks[kIdle] + ticks[kWaits]) / static_cast<double>(sysconf(_SC_CLK_TCK));
  use.stolen_s = ticks[kStolen] / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(stat, line);)
    use.processors += line.starts_with("cpu") && line.size() > 3 && std::isdigit(static_cast<unsigned char>(line[3]));
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  use.own_s = seconds(own.ru_utime) + seconds(own.ru_stime);
  return use;
}

// Lines of /proc/self/cgroup: number, controllers (none in version 2) and path, separated by colons.
std::vector<CgroupDirectory> cgroup_directories(const std::string& controller, const std::string& root) {
  std::vector<CgroupDirectory> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", path = line.substr(second + 1);
    if (controllers == ",,")
      add_groups(found, mount_of(root, "cgroup2", "rw"), path, 2);
    else if (controllers.find("," + controller + ",") != std::string::npos)
      add_groups(found, mount_of(root, "cgroup", controller), path, 1);
  }
  return found;
}

double processor_quota(const std::string& root) {
  double least = 0;
  for (const CgroupDirectory& group : cgroup_directories("cpu", root)) {
    const std::string at = root + group.path;
    double time = 0, period = 0;  // microseconds; without a quota the first is "max" or -1
    if (group.version == 2)
      std::ifstream(at + "/cpu.max") >> time >> period;
    else
      std::ifstream(at + "/cpu.cfs_quota_us") >> time, std::ifstream(at + "/cpu.cfs_period_us") >> period;
    if (time > 0 && period > 0 && (least == 0 || time / period < least)) least = time / period;
  }
  return least;
}

}  // namespace starling
