#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "backend/backend.h"
#include "base/version.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

constexpr Tag kTag = 3;
constexpr int kTurns = 50, kLargeTurns = 4;
constexpr int64_t kLarge = 4 << 20;  // bytes
constexpr int kMostPairs = 64;       // that are measured
constexpr double kFarApart = 1;      // seconds between clocks
constexpr double kSlowLink = 100e6;  // bytes/s
constexpr double kLateLink = 1e-3;   // seconds

double wall() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
double steady() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Link {
  double latency = 0, bandwidth = 0, clock = 0;  // seconds one way, bytes/s, how far the other's clock is ahead
};

// One of a pair asks, the other answers; both have sent once before, since a first message connects them.
Link ask(Communicator& comm, int other) {
  const Tensor little({2}, DType::f64), large({kLarge}, DType::i8);
  Link link;
  double best = 1e9;
  for (int i = 0; i <= kTurns; ++i) {
    const double start = steady(), sent = wall();
    comm.send(little, other, kTag).wait();
    comm.receive(little, other, kTag).wait();
    const double took = steady() - start;
    if (i == 0 || took >= best) continue;
    best = took;
    link.clock = doubles_of(little)[0] - (sent + took / 2);
  }
  link.latency = best / 2;
  double start = 0;
  for (int i = 0; i <= kLargeTurns; ++i) {
    if (i == 1) start = steady();
    comm.send(large, other, kTag).wait();
    comm.receive(little, other, kTag).wait();
  }
  link.bandwidth = static_cast<double>(kLarge) * kLargeTurns / (steady() - start);
  return link;
}

void answer(Communicator& comm, int other) {
  const Tensor little({2}, DType::f64), large({kLarge}, DType::i8);
  for (int i = 0; i <= kTurns; ++i) {
    comm.receive(little, other, kTag).wait();
    doubles_of(little)[0] = wall();
    comm.send(little, other, kTag).wait();
  }
  for (int i = 0; i <= kLargeTurns; ++i) {
    comm.receive(large, other, kTag).wait();
    comm.send(little, other, kTag).wait();
  }
}

// The first rank of each host.
std::vector<int> of_hosts(const Communicator& comm) {
  std::vector<int> ranks;
  std::set<std::string> seen;
  for (int r = 0; r < comm.size(); ++r)
    if (seen.insert(comm.host(r)).second) ranks.push_back(r);
  if (ranks.size() == 1 && comm.size() > 1) ranks.push_back(comm.size() - 1);  // within one host: through its memory
  return ranks;
}

}  // namespace

Examined examine_ranks(World& world) {
  Communicator& comm = *world.comm;
  Examined ranks{"ranks", {}};
  if (comm.size() == 1) return ranks;
  const auto add = [&](Level level, std::string what, std::string mend = "") {
    ranks.findings.push_back({level, std::move(what), std::move(mend)});
  };
  const std::vector<std::string> programs = gather_texts(comm, fmt::format("{} with {} loops", kVersion, cpu_instruction_set()));
  const std::set<std::string> different(programs.begin(), programs.end());
  if (different.size() == 1) {
    add(Level::fine, fmt::format("{} ranks of Starling {}", comm.size(), programs[0]));
  } else {
    for (const std::string& program : different) {
      const auto rank = static_cast<int>(std::find(programs.begin(), programs.end(), program) - programs.begin());
      add(Level::note, fmt::format("Starling {} on {}", program, comm.host(rank)),
          "the same program and processors everywhere, or all ranks wait for the slowest and results differ by rounding");
    }
  }
  const std::vector<int> hosts = of_hosts(comm);
  int pairs = 0;
  for (size_t i = 0; i < hosts.size(); ++i)
    for (size_t j = i + 1; j < hosts.size() && pairs < kMostPairs; ++j, ++pairs) {
      const int a = hosts[i], b = hosts[j];
      Link link;
      if (comm.rank() == a) link = ask(comm, b);
      if (comm.rank() == b) answer(comm, a);
      const Tensor told({3}, DType::f64);
      doubles_of(told)[0] = link.latency, doubles_of(told)[1] = link.bandwidth, doubles_of(told)[2] = link.clock;
      comm.broadcast(told, a).wait();
      link = {doubles_of(told)[0], doubles_of(told)[1], doubles_of(told)[2]};
      const std::string names = fmt::format("{} and {}", comm.host(a), comm.host(b));
      const std::string what = fmt::format("{}: {:.0f} us one way, {:.0f} MB/s", names, 1e6 * link.latency, link.bandwidth / 1e6);
      if (link.bandwidth < kSlowLink || link.latency > kLateLink)
        add(Level::note, what,
            "a slow link: docs/guides/strategies.md says which strategies suit it; where a host has several networks, name the fast one");
      else
        add(Level::fine, what);
      if (std::abs(link.clock) > kFarApart)
        add(Level::note, fmt::format("{}: clocks are {:.1f} s apart", names, std::abs(link.clock)),
            "set the clocks (NTP), or times in logs do not agree");
    }
  if (comm.rank() != 0) ranks.findings.clear();
  return ranks;
}

}  // namespace starling
