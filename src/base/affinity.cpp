#include "base/affinity.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "base/processor_use.h"

namespace starling {

std::vector<int> usable_core_list() {
  std::vector<int> cores;
  // The kernel refuses masks that are smaller than its own, so ask with larger and larger ones.
  for (int bits = 1024; bits <= 1 << 20 && cores.empty(); bits *= 2) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    if (mask && sched_getaffinity(0, bytes, mask) == 0)
      for (int core = 0; core < bits; ++core)
        if (CPU_ISSET_S(core, bytes, mask)) cores.push_back(core);
    CPU_FREE(mask);
  }
  if (cores.empty()) return {0};
  // More threads would use up the quota early in each period, and then stand still until the next one.
  if (const double quota = processor_quota(); quota > 0 && quota < static_cast<double>(cores.size()))
    cores.resize(static_cast<size_t>(std::max(1L, std::lround(quota))));
  return cores;
}

int usable_cores() { return static_cast<int>(usable_core_list().size()); }

int threads_to_use(int asked, const std::vector<int>& cores, const std::function<void(const std::string&)>& warn) {
  const int most = static_cast<int>(cores.size());
  if (asked > most)
    warn(fmt::format("{} threads were requested, but this process may use only {}: computing with {}", asked, cores_text(cores),
                     most == 1 ? "1 thread" : fmt::format("{} threads", most)));
  return asked == 0 ? most : std::min(asked, most);
}

std::string cores_text(const std::vector<int>& cores) {
  std::string text = cores.size() == 1 ? "core " : "cores ";
  for (size_t i = 0; i < cores.size();) {
    size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", i ? ", " : "", cores[i]);
    if (last > i) text += fmt::format("-{}", cores[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace starling
