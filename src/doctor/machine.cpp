#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "backend/cuda/cuda.h"
#include "backend/device_choice.h"
#include "base/affinity.h"
#include "base/memory.h"
#include "base/processor_use.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

constexpr double kBusy = 0.3;     // load for each core, from which other programs slow training down
constexpr double kStolen = 0.02;  // share of the time that the host of a virtual machine took away
constexpr int64_t kLittleMemory = int64_t{2} << 30;

Finding processor() {
  const std::string set = cpu_instruction_set();
  const std::string what = fmt::format("processor: {} loops, {} matrix products", set, cpu_products());
  if (set == "x86-64-v2") return {Level::note, what, "training is several times faster with AVX2 (Intel since 2013, AMD since 2015)"};
  return {Level::fine, what, ""};
}

Finding cores() {
  const std::vector<int> usable = usable_core_list();
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const std::string what = fmt::format("cores: {} ({} of {})", cores_text(usable), usable.size(), online);
  if (const double quota = processor_quota(); quota > 0 && quota < static_cast<double>(online))
    return {Level::note, fmt::format("{}, the container's quota of {:g}", what, quota), "give the container more (docker --cpus)"};
  if (static_cast<long>(usable.size()) < online)
    return {Level::note, what, "more cores: start without taskset, or ask the batch system or the container for more"};
  return {Level::fine, what, ""};
}

Finding load() {
  std::ifstream file("/proc/loadavg");
  double one_minute = 0;
  file >> one_minute;
  constexpr double kLook = 0.5;  // seconds
  const ProcessorUse before = processor_use();
  std::this_thread::sleep_for(std::chrono::duration<double>(kLook));
  const double stolen = (processor_use().stolen_s - before.stolen_s) / (kLook * std::max(before.processors, 1));
  const std::string what = fmt::format("load: {:.1f} in the last minute, {:.0f} % of the time taken by the host", one_minute, 100 * stolen);
  if (stolen > kStolen) return {Level::note, what, "the machine is shared: speed varies, and all ranks wait for the slowest"};
  if (one_minute > kBusy * usable_cores()) return {Level::note, what, "end other programs, or leave them cores of their own (taskset)"};
  return {Level::fine, what, ""};
}

Finding memory() {
  const UsableMemory usable = usable_memory();
  const std::string what = "memory: " + usable.text();
  if (usable.bytes < kLittleMemory)
    return {Level::note, what, "large models need more: raise the limit, or divide the model (parallel.pipeline)"};
  return {Level::fine, what, ""};
}

std::vector<Finding> limits() {
  std::vector<Finding> found;
  rlimit files{}, size{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 256)
    found.push_back({Level::problem, fmt::format("open files: at most {}", files.rlim_cur), "ulimit -n 1024"});
  if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY)
    found.push_back({Level::problem, fmt::format("files: at most {} MiB each", size.rlim_cur >> 20), "ulimit -f unlimited"});
  if (found.empty()) found.push_back({Level::fine, fmt::format("limits: {} open files, files of any size", files.rlim_cur), ""});
  return found;
}

Finding card() {
  const std::string what = "cards: " + cuda::describe_cuda();
  if (why_no_card({}).empty()) return {Level::fine, what, ""};
  return {Level::note, what, "docs/guides/gpu.md"};
}

}  // namespace

Examined examine_machine() {
  Examined machine{"machine", {processor(), cores(), load(), memory()}};
  for (Finding& f : limits()) machine.findings.push_back(std::move(f));
  machine.findings.push_back(card());
  return machine;
}

}  // namespace starling
