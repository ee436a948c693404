#include "base/processor_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cctype>
#include <fstream>

namespace starling {

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

}  // namespace starling
