// Processor time used by this process and by others: a measurement taken while other programs run does not describe the machine. And how
// much of it this process is allowed.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct ProcessorUse {
  // Seconds since boot that processors were idle, and that this process has used. Idle time is exact, while busy times are sampled by the
  // kernel's ticks and may be off by a tenth where processes are throttled.
  double idle_s = 0, own_s = 0;
  int processors = 0;   // 0: unknown
  double stolen_s = 0;  // that the host of this virtual machine took
};

/// Reads the use up to now. `root` is the directory that holds proc/; tests pass one other than "/".
ProcessorUse processor_use(const std::string& root = "/");

/// Returns the time on processors that the cgroup of this process and each of its ancestors allow, in cores: 1.5 of docker --cpus 1.5; 0 if
/// there is no quota. `root` as above.
double processor_quota(const std::string& root = "/");

/// Returns the directories of this process's cgroup and of each of its ancestors that is visible from here, in the hierarchy that has a
/// controller, such as "memory" or "cpu".
struct CgroupDirectory {
  std::string path;
  int version;  // 1 or 2
};
std::vector<CgroupDirectory> cgroup_directories(const std::string& controller, const std::string& root = "/");

}  // namespace starling
