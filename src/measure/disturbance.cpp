#include "measure/disturbance.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "base/task_progress.h"

namespace starling {
namespace {

// Processor times are those of the kernel, which network namespaces and containers share whatever they call their host.
double kernel() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return static_cast<double>(std::hash<std::string>()(id) >> 16);  // a double holds 48 bits exactly
}

}  // namespace

std::string disturbance_of(const std::vector<RankUse>& ranks) {
  struct HostUse {
    double count = 0, threads = 0, seconds = 0, idle_s = 0, own_s = 0, stolen_s = 0, processors = 0;
    std::set<double> processes;
  };
  std::map<double, HostUse> hosts;
  for (const RankUse& rank : ranks) {
    HostUse& host = hosts[rank.host];
    host.count += 1;
    host.threads += rank.threads;
    host.seconds += rank.seconds;
    host.idle_s += rank.idle_s;
    host.stolen_s += rank.stolen_s;
    host.processors = rank.processors;
    if (host.processes.insert(rank.process).second) host.own_s += rank.own_s;
  }
  std::string text;
  double worst = 0;
  const auto keep = [&](double lost, const char* what, double processors) {
    if (lost <= worst) return;
    worst = lost;
    text = fmt::format(fmt::runtime(what), lost, processors);
  };
  for (const auto& [name, host] : hosts) {
    if (host.processors == 0 || host.seconds <= 0) continue;
    const double seconds = host.seconds / host.count, stolen = host.stolen_s / host.count / seconds;
    const double others = host.processors - (host.idle_s / host.count + host.own_s) / seconds;
    // The system itself may use up to a tenth of a thread's time.
    if (stolen > 0.1)
      keep(stolen, "the host took {:.1f} of {} processors away", host.processors);
    else if (others > 0.1 * host.threads && others + host.threads > host.processors + 0.1)
      keep(others, "other programs used {:.1f} of {} processors", host.processors);
  }
  return text;
}

DisturbanceWatch::DisturbanceWatch(Peers& peers, int threads)
    : peers_(peers), threads_(threads), before_(processor_use()), start_(steady_seconds()) {}

std::string DisturbanceWatch::text() const {
  const ProcessorUse now = processor_use();
  const double own[] = {kernel(),
                        static_cast<double>(getpid()),
                        static_cast<double>(threads_),
                        steady_seconds() - start_,
                        now.idle_s - before_.idle_s,
                        now.own_s - before_.own_s,
                        now.stolen_s - before_.stolen_s,
                        static_cast<double>(before_.processors)};
  const std::vector<double> all = peers_.gather(own);
  std::vector<RankUse> ranks;
  for (auto at = all.begin(); at != all.end(); at += std::size(own))
    ranks.push_back({at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]});
  return disturbance_of(ranks);
}

}  // namespace starling
