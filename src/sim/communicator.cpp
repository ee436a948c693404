// What a rank sees of the simulated cluster: its communicator and its clock; and simulate(), which starts everything.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "sim/group.h"
#include "sim/simulate.h"

namespace starling::sim {
namespace {

// One side of a message between two ranks.
class MessageOperation : public SimOperation {
 public:
  MessageOperation(Engine& engine, int rank, int peer, Tag tag, bool sends, Tensor x)
      : SimOperation(engine, rank), peer_(peer), tag_(tag), sends_(sends), x_(std::move(x)) {}
  std::string name() const override { return fmt::format("a message {} rank {} (tag {})", sends_ ? "to" : "from", peer_, tag_); }
  std::string late() const override { return engine.lateness(peer_, sends_ ? "has not received it" : "has not sent it"); }
  bool needs(int rank) const override { return rank == peer_; }
  void message_ended() override {
    x_ = Tensor();
    engine.complete(*this);
  }

 private:
  int peer_;
  Tag tag_;
  bool sends_;
  Tensor x_;
};

class SimClock : public Clock {
 public:
  SimClock(Engine& engine, int rank) : engine_(engine), rank_(rank) {}
  int64_t now_ns() const override { return engine_.now(rank_); }
  void begin(const Work& work) override { engine_.begin(rank_, work); }
  void end() override { engine_.end(rank_); }
  void sleep_until(int64_t ns) override { engine_.sleep_until(rank_, ns); }

 private:
  Engine& engine_;
  int rank_;
};

uint64_t fingerprint(const Schedule& schedule) {
  Fnv hash;
  for (const auto& round : schedule.rounds) {
    const auto locals = [&](const std::vector<Schedule::Local>& list) {
      for (const auto& local : list) hash.add(static_cast<uint64_t>(local.op) << 48 ^ static_cast<uint64_t>(local.count));
    };
    hash.add(round.sends.size() << 32 | round.receives.size());
    locals(round.before);
    for (const auto& send : round.sends) hash.add(static_cast<uint64_t>(send.to) << 48 ^ static_cast<uint64_t>(send.bytes));
    for (const auto& receive : round.receives) hash.add(static_cast<uint64_t>(receive.from) << 48 ^ static_cast<uint64_t>(receive.bytes));
    locals(round.after);
  }
  return hash.value();
}

class SimCommunicator : public Communicator {
 public:
  SimCommunicator(Engine& engine, int rank, std::shared_ptr<Group> group, int local)
      : engine_(engine), rank_(rank), group_(std::move(group)), local_(local) {}
  int rank() const override { return local_; }
  int size() const override { return static_cast<int>(group_->ranks.size()); }
  std::string host(int r) const override { return host_name(engine_.cluster().node_of(global(r))); }

  Traffic own_traffic() const override {
    const auto lock = engine_.enter(rank_);
    Traffic traffic = engine_.rank(rank_).report.traffic;
    traffic.waited_ns = engine_.rank(rank_).report.waited_ns;
    return traffic;
  }

  Pending start_send(const Tensor& x, int to, Tag tag) override { return message(x, to, tag, true); }
  Pending start_receive(const Tensor& x, int from, Tag tag) override { return message(x, from, tag, false); }

  Pending start(Schedule schedule, const Tensor& x, const char* what) override {
    const auto lock = engine_.enter(rank_);
    const bool modelled = engine_.scenario().modelled_collectives;
    auto op = std::make_shared<GroupOperation>(engine_, group_, local_, what, x);
    Meeting& meeting = op->join();
    const uint64_t variant = modelled ? fingerprint(schedule) : 0;
    op->schedule = std::move(schedule);
    if (!modelled)
      op->start_messages();
    else if (join_modelled(meeting, variant))
      run_modelled(meeting, x.dtype(), [&](int r) { return meeting.members[static_cast<size_t>(r)]->schedule; });
    return pending(op);
  }

  std::unique_ptr<Communicator> split_off(const Colors& color) override {
    auto lock = engine_.enter(rank_);
    auto op = std::make_shared<GroupOperation>(engine_, group_, local_, "split", Tensor());
    op->color = color(local_);
    Meeting& meeting = op->join();
    if (meeting.started == size()) {
      split_all(meeting);
      // Takes as long as a barrier, after which every rank knows of every other.
      const NetworkModel& network = engine_.cluster().network();
      const LinkModel& link = group_->within_a_node ? network.intra : network.inter;
      const double rounds = std::ceil(std::log2(size()));
      const Time ends = engine_.now() + us(rounds * (link.latency_us + link.message_us));
      for (const auto& member : std::vector(meeting.members)) engine_.complete_later(member, ends);
    }
    lock.unlock();
    pending(op).wait();
    const auto& ranks = op->subgroup->ranks;
    const int local = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
    auto part = std::make_unique<SimCommunicator>(engine_, rank_, op->subgroup, local);
    part->set_algorithm(algorithm());
    part->set_deadline(deadline());
    return part;
  }

  using Communicator::note;
  void note(const char* phase, int64_t step) override {
    const auto lock = engine_.enter(rank_);
    engine_.rank(rank_).phase = phase;
    if (step > 0) engine_.rank(rank_).step = step;
  }

 protected:
  Pending run_made(const ScheduleMaker& make, int variant, const Tensor& x, const char* what) override {
    if (!engine_.scenario().modelled_collectives) return start(make(local_), x, what);
    const auto lock = engine_.enter(rank_);
    auto op = std::make_shared<GroupOperation>(engine_, group_, local_, what, x);
    Meeting& meeting = op->join();
    CHECK(meeting.count == x.count(), "rank {}: {} of {} elements, elsewhere {}", rank_, what, x.count(), meeting.count);
    Fnv hash;
    hash.add(static_cast<uint64_t>(variant));
    hash.add(static_cast<uint64_t>(x.count()));
    if (join_modelled(meeting, hash.value())) run_modelled(meeting, x.dtype(), make);
    return pending(op);
  }

 private:
  int global(int r) const {
    CHECK(r >= 0 && r < size(), "rank {} of {}", r, size());
    return group_->ranks[static_cast<size_t>(r)];
  }

  Pending message(const Tensor& x, int peer, Tag tag, bool sends) {
    CHECK(tag >= 0 && tag <= 32767, "tag {}", tag);
    const auto lock = engine_.enter(rank_);
    const int other = global(peer);
    auto op = std::make_shared<MessageOperation>(engine_, rank_, other, tag, sends, x);
    const uint64_t kind = static_cast<uint64_t>(group_->id) << 1;
    if (x.bytes() == 0)
      engine_.complete(*op);  // both sides know
    else if (sends)
      engine_.post_send({kind, static_cast<uint64_t>(tag), rank_, other}, op, x.raw(), x.bytes(), "message");
    else
      engine_.post_receive({kind, static_cast<uint64_t>(tag), other, rank_}, op, x.raw(), x.bytes());
    return pending(op);
  }

  Pending pending(const std::shared_ptr<SimOperation>& op) const {
    op->silence_s = deadline();
    return Pending(op, deadline());
  }

  // For modelled collectives. Returns true on the rank that completes the meeting.
  bool join_modelled(Meeting& meeting, uint64_t variant) {
    Fnv hash;
    hash.add(meeting.variant);
    hash.add(variant);
    meeting.variant = hash.value();
    return meeting.started == size();
  }

  void run_modelled(Meeting& meeting, DType type, const ScheduleMaker& schedule_of) {
    const Time begins = std::max(engine_.now(), engine_.network_free(group_->cards));
    const bool data = std::any_of(meeting.members.begin(), meeting.members.end(), [](const auto& m) { return m->x.has_elements(); });
    const auto timing = timed(meeting, type, schedule_of, begins);
    if (data) move_data(meeting, type, schedule_of);
    engine_.occupy_network(group_->cards, begins + timing->longest);
    engine_.count_messages(timing->messages);
    const std::vector<std::shared_ptr<GroupOperation>> members = meeting.members;
    for (size_t r = 0; r < members.size(); ++r) {
      const CollectiveTiming::PerRank& part = timing->ranks[r];
      Traffic& traffic = engine_.rank(members[r]->rank).report.traffic;
      traffic.bytes_sent += part.bytes_sent;
      traffic.bytes_received += part.bytes_received;
      traffic.messages_sent += part.messages;
      members[r]->bytes = part.bytes_sent;
      members[r]->modelled_ns = static_cast<double>(part.ends);
      engine_.complete_later(members[r], begins + part.ends);
    }
  }

  // Taken from the group's cache if everything that it depends on is equal.
  std::shared_ptr<const CollectiveTiming> timed(const Meeting& meeting, DType type, const ScheduleMaker& schedule_of, Time begins) {
    Fnv hash;
    hash.add(std::as_bytes(std::span(meeting.what, std::strlen(meeting.what))));
    hash.add(meeting.variant);
    hash.add(static_cast<uint64_t>(type));
    for (const int card : group_->cards)
      if (!engine_.cluster().slow(card).empty()) {
        const double slowness = engine_.cluster().slowness(card, begins);
        hash.add(static_cast<uint64_t>(card));
        hash.add(std::as_bytes(std::span(&slowness, 1)));
      }
    auto& known = group_->timings[hash.value()];
    if (!known) known = std::make_shared<CollectiveTiming>(time_collective(engine_.cluster(), group_->ranks, schedule_of, type, begins));
    return known;
  }

  void move_data(Meeting& meeting, DType type, const ScheduleMaker& schedule_of) {
    std::vector<Schedule> schedules;
    std::vector<Part> parts;
    for (int r = 0; r < size(); ++r) {
      GroupOperation& member = *meeting.members[static_cast<size_t>(r)];
      schedules.push_back(schedule_of(r));
      if (member.x.has_elements()) member.scratch = Tensor({schedules.back().scratch_bytes}, DType::i8);
      parts.push_back({member.x.raw(), member.scratch.raw()});
    }
    execute(schedules, parts, type, [&](const std::byte* data, int64_t bytes) { engine_.hash_payload(data, bytes); });
    for (auto& member : meeting.members) member->scratch = Tensor();
  }

  void split_all(Meeting& meeting) {
    std::map<int, std::vector<int>> ranks;
    for (const auto& member : meeting.members) ranks[member->color].push_back(member->rank);
    std::map<int, std::shared_ptr<Group>> groups;
    for (auto& [color, list] : ranks) groups[color] = engine_.make_group(std::move(list));
    for (const auto& member : meeting.members) member->subgroup = groups[member->color];
  }

  Engine& engine_;
  const int rank_;  // in the whole run
  const std::shared_ptr<Group> group_;
  const int local_;
};

}  // namespace

std::string host_name(int node) { return fmt::format("node{}", node); }

World make_world(Engine& engine, int rank) {
  const int node = engine.cluster().node_of(rank);
  const int per_node = static_cast<int>(std::min<int64_t>(engine.cluster().network().ranks_per_node, engine.scenario().ranks));
  World world;
  world.comm = std::make_unique<SimCommunicator>(engine, rank, engine.world_group(), rank);
  world.clock = std::make_unique<SimClock>(engine, rank);
  world.local_rank = rank - node * per_node;
  world.local_size = std::min(per_node, engine.scenario().ranks - node * per_node);
  world.simulated = true;
  world.computes = !engine.scenario().timing_only;
  world.on_cards = engine.scenario().network.gpu != "none";
  return world;
}

}  // namespace starling::sim

namespace starling {

SimulationResult simulate(const Scenario& scenario, const std::function<void(World&)>& rank_main, const std::string& chrome_trace_path) {
  SimulationResult result = simulate_to_end(scenario, rank_main, chrome_trace_path);
  if (result.error) std::rethrow_exception(result.error);
  return result;
}

SimulationResult simulate_to_end(const Scenario& scenario, const std::function<void(World&)>& rank_main,
                                 const std::string& chrome_trace_path) {
  sim::Engine engine(scenario, !chrome_trace_path.empty());
  engine.run(rank_main);
  if (!chrome_trace_path.empty()) {
    std::vector<int> nodes;
    for (int r = 0; r < scenario.ranks; ++r) nodes.push_back(engine.cluster().node_of(r));
    engine.trace.write(chrome_trace_path, nodes);
  }
  return engine.result();
}

}  // namespace starling
