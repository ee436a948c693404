// The physics of the simulated cluster, and the timing of one collective on an otherwise idle network: when each rank would be done if all
// began together. Modelled collectives take that time. The timing uses the same equations as single messages, but no threads, no data and
// no other traffic, and is cached.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/schedule.h"
#include "sim/scenario.h"

namespace starling::sim {

using Time = int64_t;  // virtual, ns

// Between `from` and `until` everything takes `factor` times as long.
struct Slowdown {
  Time from, until;
  double factor;
};
// Returns when something that takes `ns` undisturbed ends.
Time finish(Time start, double ns, const std::vector<Slowdown>& slow);

class Cluster {
 public:
  explicit Cluster(const Scenario& scenario);  // throws ConfigError if the scenario is inconsistent
  int node_of(int rank) const { return rank / per_node_; }
  int ranks_per_node() const { return per_node_; }
  int cards() const { return nodes_ * per_node_cards_; }  // network cards, those of node 0 first
  int card_of(int rank) const {
    return node_of(rank) * per_node_cards_ + static_cast<int>(int64_t{rank % per_node_} * per_node_cards_ / per_node_);
  }
  const LinkModel& link(int from, int to) const { return node_of(from) == node_of(to) ? network_.intra : network_.inter; }
  bool eager(int64_t bytes) const { return bytes <= network_.eager_bytes; }
  const std::vector<Slowdown>& slow_of_node(int node) const { return slow_[static_cast<size_t>(node)]; }
  const std::vector<Slowdown>& slow(int card) const { return slow_of_node(card / per_node_cards_); }
  double slowness(int card, Time at) const;  // the slowdown factor at one moment
  double arithmetic_ns(int rank, const std::vector<Schedule::Local>& locals, DType type) const;
  double speed(int rank) const { return speeds_[static_cast<size_t>(rank)]; }
  const NetworkModel& network() const { return network_; }

 private:
  NetworkModel network_;
  int nodes_, per_node_, per_node_cards_;
  double memory_gb_s_;
  std::vector<double> speeds_;
  std::vector<std::vector<Slowdown>> slow_;  // by node: its network cards
};

inline Time at_seconds(double s) { return static_cast<Time>((s < 9e9 ? s : 9e9) * 1e9); }
inline Time whole_ns(double ns) { return static_cast<Time>(ns + 0.5); }
inline Time us(double microseconds) { return whole_ns(1e3 * microseconds); }
inline double transfer_ns(const LinkModel& link, int64_t bytes) { return 8.0 * static_cast<double>(bytes) / link.bandwidth_gbit_s; }

struct CollectiveTiming {
  struct PerRank {
    Time ends = 0;  // time since the common beginning
    int64_t bytes_sent = 0, bytes_received = 0, messages = 0;
  };
  std::vector<PerRank> ranks;
  Time longest = 0;
  int64_t messages = 0;
};
// Times a collective. `ranks`: the group's, as numbered in the whole run. Network cards are as slow as they are at `at`.
CollectiveTiming time_collective(const Cluster& cluster, const std::vector<int>& ranks, const std::function<Schedule(int)>& schedule_of,
                                 DType type, Time at);

// Moves the data of a collective in memory, all at once; entries without storage are skipped. Calls copied(data, bytes) for each message.
struct Part {
  std::byte* data = nullptr;
  std::byte* scratch = nullptr;
};
void execute(const std::vector<Schedule>& schedules, const std::vector<Part>& parts, DType type,
             const std::function<void(const std::byte*, int64_t)>& copied);

}  // namespace starling::sim
