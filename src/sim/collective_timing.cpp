// Schedules are flattened into lists, rank by rank, because walking the small vectors of hundreds of ranks times hundreds of rounds is
// slow.
#include "sim/collective_timing.h"

#include <algorithm>
#include <cstring>
#include <queue>
#include <unordered_map>

#include "base/error.h"

namespace starling::sim {
namespace {

struct Flow {
  int from = -1, to = -1;
  int64_t bytes = 0;
  Time sent = -1, expected = -1, arrival = -1, tail = 0;
};
struct Round {
  Time before = 0, after = 0;
  uint32_t first = 0, sends = 0, receives = 0;  // flows of the rank from `first`: sends, then receives
};
struct Member {
  std::vector<Round> rounds;
  std::vector<uint32_t> flows;
  size_t round = 0;
  uint32_t open = 0;  // messages of the round that have not ended
  Time ends = 0;      // latest end of those that have
  Time software = 0;
};

// Matches the k-th message from one rank to another on both sides, whichever side comes first.
class Pairing {
 public:
  uint32_t flow(int from, int to, bool send, int64_t bytes, std::vector<Flow>& flows) {
    const uint64_t key = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to);
    Pair*& pair = send ? last_send_ : last_receive_;
    uint64_t& last = send ? last_send_key_ : last_receive_key_;
    if (!pair || last != key) pair = &pairs_[key];
    last = key;
    const size_t k = send ? pair->sends++ : pair->receives++;
    if (k == pair->flows.size()) {
      pair->flows.push_back(static_cast<uint32_t>(flows.size()));
      flows.push_back({from, to, bytes});
    }
    const uint32_t id = pair->flows[k];
    CHECK(flows[id].bytes == bytes, "message {} from rank {} to {} has {} bytes on one side, {} on the other", k, from, to, bytes,
          flows[id].bytes);
    return id;
  }
  void check_complete() const {
    for (const auto& [key, pair] : pairs_)
      CHECK(pair.sends == pair.receives, "rank {} sends {} messages to {}, which expects {}", key >> 32, pair.sends, key & 0xffffffff,
            pair.receives);
  }

 private:
  struct Pair {
    std::vector<uint32_t> flows;
    size_t sends = 0, receives = 0;
  };
  std::unordered_map<uint64_t, Pair> pairs_;  // references stay valid
  Pair *last_send_ = nullptr, *last_receive_ = nullptr;
  uint64_t last_send_key_ = 0, last_receive_key_ = 0;
};

// All ranks' rounds and messages in the order of their times.
class Walk {
 public:
  Walk(const Cluster& cluster, const std::vector<int>& ranks, Time at)
      : cluster_(cluster), ranks_(ranks), members_(ranks.size()), result_{std::vector<CollectiveTiming::PerRank>(ranks.size())} {
    out_.resize(static_cast<size_t>(cluster.cards()) + ranks.size());
    in_.resize(out_.size());
    for (int card = 0; card < cluster.cards(); ++card) slowness_.push_back(cluster.slowness(card, at));
  }

  void add(int r, const Schedule& schedule, DType type) {
    Member& m = members_[static_cast<size_t>(r)];
    CollectiveTiming::PerRank& sums = result_.ranks[static_cast<size_t>(r)];
    const int global = ranks_[static_cast<size_t>(r)];
    m.rounds.reserve(schedule.rounds.size());
    for (const Schedule::Round& round : schedule.rounds) {
      Round flat;
      flat.first = static_cast<uint32_t>(m.flows.size());
      flat.before = whole_ns(cluster_.arithmetic_ns(global, round.before, type));
      flat.after = whole_ns(cluster_.arithmetic_ns(global, round.after, type));
      for (const Schedule::Send& send : round.sends) {
        if (send.bytes == 0) continue;
        m.flows.push_back(pairing_.flow(r, send.to, true, send.bytes, flows_));
        sums.bytes_sent += send.bytes;
        ++sums.messages;
        ++result_.messages;
        ++flat.sends;
      }
      for (const Schedule::Receive& receive : round.receives) {
        if (receive.bytes == 0) continue;
        m.flows.push_back(pairing_.flow(receive.from, r, false, receive.bytes, flows_));
        sums.bytes_received += receive.bytes;
        ++flat.receives;
      }
      m.rounds.push_back(flat);
    }
  }

  CollectiveTiming run() {
    pairing_.check_complete();
    for (uint32_t r = 0; r < members_.size(); ++r) next_.push({0, begin, r});
    size_t ended = 0;
    while (!next_.empty()) {
      const Step step = next_.top();
      next_.pop();
      if (step.kind == enter_link) {
        enter(flows_[step.id], step);
      } else if (step.kind == enter_receiver) {
        arrive(flows_[step.id], step.time);
      } else if (Member& m = members_[step.id]; m.round < m.rounds.size()) {
        begin_round(m, step.time);
      } else {
        result_.ranks[step.id].ends = step.time;
        result_.longest = std::max(result_.longest, step.time);
        ++ended;
      }
    }
    CHECK(ended == members_.size(), "{} of {} ranks wait for each other", members_.size() - ended, members_.size());
    return std::move(result_);
  }

 private:
  enum Kind : uint8_t { begin, enter_link, enter_receiver };
  struct Step {
    Time time;
    Kind kind;
    uint32_t id;  // of a member, or of a flow
    bool operator>(const Step& o) const { return time != o.time ? time > o.time : kind != o.kind ? kind > o.kind : id > o.id; }
  };
  int global(int r) const { return ranks_[static_cast<size_t>(r)]; }
  const LinkModel& link(const Flow& f) const { return cluster_.link(global(f.from), global(f.to)); }
  // The port of one end of a flow, and what a message takes there.
  size_t port(int end, int other) const {
    const bool within = cluster_.node_of(global(end)) == cluster_.node_of(global(other));
    return static_cast<size_t>(within ? cluster_.cards() + end : cluster_.card_of(global(end)));
  }
  Time takes(const Flow& f, size_t port) const {
    const double ns = transfer_ns(link(f), f.bytes);
    return whole_ns(port < slowness_.size() ? ns * slowness_[port] : ns);
  }

  void begin_round(Member& m, Time time) {
    const Round& round = m.rounds[m.round];
    if (round.before > 0) time = m.software = std::max(m.software, time) + round.before;
    m.open = round.sends + round.receives;
    m.ends = time;
    if (m.open == 0) return end_round(m);
    for (uint32_t i = 0; i < round.sends; ++i) {
      const uint32_t id = m.flows[round.first + i];
      Flow& f = flows_[id];
      f.sent = m.software = std::max(m.software, time) + us(link(f).message_us);
      if (cluster_.eager(f.bytes))
        next_.push({f.sent, enter_link, id});
      else if (f.expected >= 0)
        next_.push({f.sent + us(link(f).latency_us), enter_link, id});
    }
    for (uint32_t i = 0; i < round.receives; ++i) {
      const uint32_t id = m.flows[round.first + round.sends + i];
      Flow& f = flows_[id];
      f.expected = time;
      if (f.arrival >= 0)
        ended(m, std::max(time, f.arrival));
      else if (f.sent >= 0 && !cluster_.eager(f.bytes))
        next_.push({std::max(f.sent, time) + us(link(f).latency_us), enter_link, id});
    }
  }

  void enter(Flow& f, const Step& step) {
    const size_t p = port(f.from, f.to);
    const Time began = std::max(step.time, out_[p]), latency = us(link(f).latency_us);
    out_[p] = began + takes(f, p);
    f.tail = out_[p] + latency;
    next_.push({began + latency, enter_receiver, step.id});
    ended(members_[static_cast<size_t>(f.from)], out_[p]);
  }

  void arrive(Flow& f, Time time) {
    const size_t p = port(f.to, f.from);
    f.arrival = in_[p] = std::max(std::max(time, in_[p]) + takes(f, p), f.tail);
    if (f.expected >= 0) ended(members_[static_cast<size_t>(f.to)], f.arrival);
  }

  void ended(Member& m, Time time) {
    m.ends = std::max(m.ends, time);
    if (--m.open == 0) end_round(m);
  }

  void end_round(Member& m) {
    const Time after = m.rounds[m.round].after;
    if (after > 0) m.ends = m.software = std::max(m.software, m.ends) + after;
    ++m.round;
    next_.push({m.ends, begin, static_cast<uint32_t>(&m - members_.data())});
  }

  const Cluster& cluster_;
  const std::vector<int>& ranks_;
  std::vector<Member> members_;
  CollectiveTiming result_;
  std::vector<Flow> flows_;
  Pairing pairing_;
  std::vector<Time> out_, in_;  // ports: network cards, then ranks
  std::vector<double> slowness_;
  std::priority_queue<Step, std::vector<Step>, std::greater<>> next_;
};

}  // namespace

Time finish(Time start, double ns, const std::vector<Slowdown>& slow) {
  if (slow.empty()) return start + whole_ns(ns);
  double left = ns;
  Time t = start;
  for (;;) {
    double factor = 1;
    Time until = INT64_MAX;  // of this factor
    for (const Slowdown& s : slow) {
      if (t >= s.from && t < s.until) {
        factor *= s.factor;
        until = std::min(until, s.until);
      } else if (t < s.from) {
        until = std::min(until, s.from);
      }
    }
    if (until == INT64_MAX || left * factor <= static_cast<double>(until - t)) return t + whole_ns(left * factor);
    left -= static_cast<double>(until - t) / factor;
    t = until;
  }
}

Cluster::Cluster(const Scenario& s) : network_(resolved(s.network)), memory_gb_s_(s.compute.memory_gb_s), speeds_(s.speeds) {
  const auto require = [](bool good, const char* key, const auto& value, const char* allowed) {
    if (!good) throw ConfigError(fmt::format("simulation: {} is {}; it must be {}", key, value, allowed));
  };
  require(s.ranks >= 1 && s.ranks <= 65536, "ranks", s.ranks, "1 to 65536");
  require(network_.ranks_per_node >= 1, "ranks-per-node", network_.ranks_per_node, "at least 1");
  require(network_.inter.bandwidth_gbit_s > 0, "bandwidth-gbit-s", network_.inter.bandwidth_gbit_s, "above 0");
  require(network_.intra.bandwidth_gbit_s > 0, "intra-bandwidth-gbit-s", network_.intra.bandwidth_gbit_s, "above 0");
  require(speeds_.empty() || static_cast<int>(speeds_.size()) == s.ranks, "the number of speeds", speeds_.size(), "the number of ranks");
  speeds_.resize(static_cast<size_t>(s.ranks), 1.0);
  for (const double speed : speeds_) require(speed > 0, "a speed", speed, "above 0");
  per_node_ = static_cast<int>(std::min<int64_t>(network_.ranks_per_node, s.ranks));
  nodes_ = (s.ranks + per_node_ - 1) / per_node_;
  if (per_node_ == 1)  // else Engine::share_node
    for (double& speed : speeds_) speed *= s.compute.alone_speed;
  require(network_.cards_per_node >= 1, "network-cards", network_.cards_per_node, "at least 1");
  per_node_cards_ = static_cast<int>(std::min<int64_t>(network_.cards_per_node, per_node_));
  slow_.resize(static_cast<size_t>(nodes_));
  for (const LinkFault& fault : s.link_faults) {
    require(fault.node >= 0 && fault.node < nodes_, "the node of a link fault", fault.node, "one of the scenario's");
    require(fault.factor >= 0, "the factor of a link fault", fault.factor, "at least 0");
    require(fault.factor > 0 || !s.modelled_collectives, "the factor of a link fault", fault.factor, "above 0 with modelled-collectives");
    slow_[static_cast<size_t>(fault.node)].push_back({at_seconds(fault.from_s), at_seconds(fault.until_s), 1 / fault.factor});
  }
  for (const Straggler& straggler : s.stragglers) {
    require(straggler.rank >= 0 && straggler.rank < s.ranks, "the rank of a straggler", straggler.rank, "one of the scenario's");
    require(straggler.factor > 0, "the factor of a straggler", straggler.factor, "above 0");
  }
  for (const MessageFault& f : s.message_faults) {
    require(f.lost >= 0 && f.lost < 1, "the probability of a lost message", f.lost, "0 to below 1");
    require(f.retry_ms > 0, "retry-ms of a message fault", f.retry_ms, "above 0");
    require(f.delay_ms >= 0, "delay-ms of a message fault", f.delay_ms, "at least 0");
    require(!s.modelled_collectives, "the number of message-faults", s.message_faults.size(),
            "0 with modelled-collectives, which send none");
  }
  for (const Crash& crash : s.crashes)
    require(crash.rank >= 0 && crash.rank < s.ranks, "the rank of a crash", crash.rank, "one of the scenario's");
}

double Cluster::slowness(int card, Time at) const {
  double factor = 1;
  for (const Slowdown& s : slow(card))
    if (at >= s.from && at < s.until) factor *= s.factor;
  return factor;
}

double Cluster::arithmetic_ns(int rank, const std::vector<Schedule::Local>& locals, DType type) const {
  if (memory_gb_s_ <= 0 || locals.empty()) return 0;
  double bytes = 0;
  for (const Schedule::Local& local : locals) bytes += static_cast<double>(bytes_touched(local, type));
  return bytes / memory_gb_s_ / speed(rank);
}

CollectiveTiming time_collective(const Cluster& cluster, const std::vector<int>& ranks, const std::function<Schedule(int)>& schedule_of,
                                 DType type, Time at) {
  Walk walk(cluster, ranks, at);
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) walk.add(r, schedule_of(r), type);
  return walk.run();
}

void execute(const std::vector<Schedule>& schedules, const std::vector<Part>& parts, DType type,
             const std::function<void(const std::byte*, int64_t)>& copied) {
  struct State {
    size_t round = 0;
    bool posted = false;
    size_t open = 0;
  };
  struct Side {
    std::byte* memory;
    int rank;
  };
  const size_t N = schedules.size();
  std::vector<State> states(N);
  // Posted on one side only: sends from a to b, receives of b from a.
  std::unordered_map<uint64_t, std::queue<Side>> sends, receives;
  std::vector<int> ready;
  for (size_t r = N; r-- > 0;) ready.push_back(static_cast<int>(r));
  const auto memory = [&](int r, Area area, int64_t offset) -> std::byte* {
    const Part& p = parts[static_cast<size_t>(r)];
    std::byte* base = area == Area::data ? p.data : p.scratch;
    return base ? base + offset : nullptr;
  };
  const auto arithmetic = [&](int r, const std::vector<Schedule::Local>& locals) {
    const Part& p = parts[static_cast<size_t>(r)];
    if (p.data)
      for (const Schedule::Local& local : locals) apply(local, type, p.data, p.scratch);
  };
  const auto ended = [&](int r) {
    if (--states[static_cast<size_t>(r)].open == 0) ready.push_back(r);
  };
  const auto post = [&](int from, int to, std::byte* at, int64_t bytes, bool send) {
    const uint64_t key = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to);
    auto& others = (send ? receives : sends)[key];
    if (others.empty()) {
      (send ? sends : receives)[key].push({at, send ? from : to});
      return;
    }
    const Side other = others.front();
    others.pop();
    std::byte* source = send ? at : other.memory;
    std::byte* target = send ? other.memory : at;
    if (source && target) std::memcpy(target, source, static_cast<size_t>(bytes));
    if (source && target) copied(target, bytes);
    ended(from);
    ended(to);
  };
  while (!ready.empty()) {
    const int r = ready.back();
    ready.pop_back();
    State& s = states[static_cast<size_t>(r)];
    const auto& rounds = schedules[static_cast<size_t>(r)].rounds;
    if (s.posted) {
      arithmetic(r, rounds[s.round].after);
      s.posted = false;
      ++s.round;
    }
    if (s.round == rounds.size()) continue;
    const Schedule::Round& round = rounds[s.round];
    arithmetic(r, round.before);
    s.posted = true;
    s.open = 1;
    for (const auto& send : round.sends) s.open += send.bytes > 0;
    for (const auto& receive : round.receives) s.open += receive.bytes > 0;
    for (const auto& send : round.sends)
      if (send.bytes > 0) post(r, send.to, memory(r, send.area, send.offset), send.bytes, true);
    for (const auto& receive : round.receives)
      if (receive.bytes > 0) post(receive.from, r, memory(r, receive.area, receive.offset), receive.bytes, false);
    ended(r);
  }
  for (size_t r = 0; r < N; ++r)
    CHECK(states[r].round == schedules[r].rounds.size(), "rank {} is stuck in round {} of {}", r, states[r].round,
          schedules[r].rounds.size());
}

}  // namespace starling::sim
