#include "base/processor_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>

namespace starling {

ProcessorUse processor_use(const std::string& root) {
  ProcessorUse use;
  std::ifstream stat(root + "proc/stat");
  std::string name;
  // Lines "cpu user nice system idle iowait irq softirq steal ...", first for all processors, then for each (proc_stat(5)). Guests are
  // included in user and nice. What the host of a virtual machine takes away (steal) counts as used by others.
  double ticks[8] = {};
  if (!(stat >> name) || name != "cpu") return use;
  for (double& value : ticks) stat >> value;
  constexpr int kIdle = 3, kWaits = 4, kStolen = 7;
  for (int i = 0; i < 8; ++i) use.all_s += i == kIdle || i == kWaits ? 0 : ticks[i];
  use.all_s /= static_cast<double>(sysconf(_SC_CLK_TCK));
  use.stolen_s = ticks[kStolen] / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(stat, line);)
    use.processors += line.starts_with("cpu") && line.size() > 3 && std::isdigit(static_cast<unsigned char>(line[3]));
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  use.own_s = seconds(own.ru_utime) + seconds(own.ru_stime);
  return use;
}

double used_by_others(const ProcessorUse& before, const ProcessorUse& after, double seconds) {
  if (before.processors == 0 || after.processors == 0 || seconds <= 0) return 0;
  return std::max(0.0, (after.all_s - before.all_s) - (after.own_s - before.own_s)) / seconds;
}

}  // namespace starling
