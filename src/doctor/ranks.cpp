#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <span>

#include "backend/backend.h"
#include "base/error.h"
#include "base/version.h"
#include "doctor/doctor.h"

namespace starling {
namespace {

constexpr Tag kTag = 3, kGreetingTag = 4;
constexpr int kTurns = 50, kLargeTurns = 4;
constexpr int64_t kLarge = 4 << 20;      // bytes
constexpr double kGreetingSeconds = 10;  // within which a first message between two hosts arrives
constexpr double kMeasuredSeconds = 20;  // after which no further pair is measured
constexpr double kFarApart = 1;          // seconds between clocks
constexpr double kSlowLink = 100e6;      // bytes/s
constexpr double kLateLink = 1e-3;       // seconds

double wall() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }
double steady() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Link {
  double latency = 0, bandwidth = 0, clock = 0;  // seconds one way, bytes/s, how far the other's clock is ahead
  double took = 0;                               // seconds, to measure it
};

// One of a pair asks, the other answers; both have sent once before, since a first message connects them.
Link ask(Communicator& comm, int other) {
  const Tensor little({2}, DType::f64), large({kLarge}, DType::i8);
  Link link;
  const double begin = steady();
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
  const double end = steady();
  link.bandwidth = static_cast<double>(kLarge) * kLargeTurns / (end - start);
  link.took = end - begin;
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

// Sends a message to each other host and waits for one from each, since ranks may have met without a connection between every two hosts.
void greet(Communicator& comm) {
  const std::vector<int> hosts = first_ranks(comm);
  if (std::find(hosts.begin(), hosts.end(), comm.rank()) == hosts.end()) return;
  const Tensor sent({1}, DType::f64), received({static_cast<int64_t>(hosts.size())}, DType::f64);
  std::vector<std::pair<int, Pending>> messages;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] == comm.rank()) continue;
    messages.emplace_back(hosts[i], comm.receive(received.slice(static_cast<int64_t>(i), {1}), hosts[i], kGreetingTag));
    messages.emplace_back(hosts[i], comm.send(sent, hosts[i], kGreetingTag));
  }
  std::vector<std::string> silent;
  for (const auto& [other, message] : messages) {
    try {
      message.wait(silent.empty() ? kGreetingSeconds : 0.1);  // all have begun at once
    } catch (const PeerError&) {
      if (silent.empty() || silent.back() != comm.host(other)) silent.push_back(comm.host(other));
    }
  }
  if (!silent.empty())
    throw PeerError(
        fmt::format("no message gets through between {} and {} within {} s: let their firewalls pass TCP on all ports, or name the "
                    "network that they share (docs/guides/doctor.md: Firewalls)",
                    comm.host(comm.rank()), fmt::join(silent, ", "), kGreetingSeconds));
}

std::string names_of(const Communicator& comm, int a, int b) { return fmt::format("{} and {}", comm.host(a), comm.host(b)); }

void add_link(const std::string& names, const Link& link, std::vector<Finding>& found) {
  const std::string what = fmt::format("{}: {:.0f} us one way, {:.0f} MB/s", names, 1e6 * link.latency, link.bandwidth / 1e6);
  if (link.bandwidth < kSlowLink || link.latency > kLateLink)
    found.push_back(
        {Level::note, what,
         "a slow link: docs/guides/strategies.md says which strategies suit it; where a host has several networks, name the fast one"});
  else
    found.push_back({Level::fine, what, ""});
  if (std::abs(link.clock) > kFarApart)
    found.push_back({Level::note, fmt::format("{}: clocks are {:.1f} s apart", names, std::abs(link.clock)),
                     "synchronise the clocks (NTP), so that times in logs agree"});
}

}  // namespace

std::vector<int> first_ranks(const Communicator& comm) {
  std::vector<int> ranks;
  std::set<std::string> seen;
  for (int r = 0; r < comm.size(); ++r)
    if (seen.insert(comm.host(r)).second) ranks.push_back(r);
  return ranks;
}

Examined examine_ranks(World& world) {
  Communicator& comm = *world.comm;
  Examined ranks{kRanksTopic, {}};
  greet(comm);
  const std::vector<std::string> programs = gather_texts(comm, fmt::format("{} with {} loops", kVersion, cpu_instruction_set()));
  if (comm.rank() != 0) return ranks;
  const std::set<std::string> different(programs.begin(), programs.end());
  if (different.size() == 1) {
    ranks.findings.push_back({Level::fine, fmt::format("{} ranks of Starling {}", comm.size(), programs[0]), ""});
    return ranks;
  }
  for (const std::string& program : different) {
    const auto rank = static_cast<int>(std::find(programs.begin(), programs.end(), program) - programs.begin());
    ranks.findings.push_back(
        {Level::note, fmt::format("Starling {} on {}", program, comm.host(rank)),
         "use the same program and processors everywhere; otherwise all ranks wait for the slowest and results differ by rounding"});
  }
  return ranks;
}

Examined examine_links(World& world, int64_t most_pairs) {
  Communicator& comm = *world.comm;
  Examined links{"links", {}};
  std::vector<int> hosts = first_ranks(comm);
  if (hosts.size() == 1 && comm.size() > 1) hosts.push_back(comm.size() - 1);  // within one host: through its memory
  const auto count = static_cast<int64_t>(hosts.size()), pairs = count * (count - 1) / 2;
  int64_t measured = 0;
  double took = 0;
  // Neighbours first, so that each host is measured if not every pair can be.
  for (int64_t distance = 1; distance < count; ++distance)
    for (int64_t i = 0; i + distance < count && measured < most_pairs && took < kMeasuredSeconds; ++i, ++measured) {
      const int a = hosts[static_cast<size_t>(i)], b = hosts[static_cast<size_t>(i + distance)];
      Link link;
      if (comm.rank() == a) link = ask(comm, b);
      if (comm.rank() == b) answer(comm, a);
      const Tensor told({4}, DType::f64);
      const std::span<double> numbers = doubles_of(told);
      numbers[0] = link.latency, numbers[1] = link.bandwidth, numbers[2] = link.clock, numbers[3] = link.took;
      comm.broadcast(told, a).wait();
      took += numbers[3];
      if (comm.rank() == 0) add_link(names_of(comm, a, b), {numbers[0], numbers[1], numbers[2], numbers[3]}, links.findings);
    }
  if (comm.rank() == 0 && measured < pairs)
    links.findings.push_back(
        {Level::note,
         fmt::format("{} of {} pairs of hosts were measured, neighbours in the list first; {} were not", measured, pairs, pairs - measured),
         "to measure others, name only those hosts (--hosts)"});
  return links;
}

}  // namespace starling
