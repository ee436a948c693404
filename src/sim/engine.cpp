// The baton: whose turn it is, and what happens when it is nobody's.
#include "sim/engine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "base/affinity.h"
#include "base/random.h"
#include "sim/group.h"

namespace starling::sim {
namespace {

constexpr const char* kPieceNames[] = {"forward", "backward", "update", "memory"};
constexpr Time kPoll = 1000;  // ns that a look at an operation which is not done costs, so that polling ends

enum Hashed : uint8_t { piece_event = 32, wait_event, failure_event, crash_event };

// Ranks that only time have nothing to do at the same time, and a thread of the same core is woken faster.
void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(core), &cores);
  sched_setaffinity(0, sizeof cores, &cores);  // only for speed: may fail
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

// What a rank waits for that waits for any of several operations: it lives as long as this wait, and is woken by the first of them.
class AnyOperation : public SimOperation {
 public:
  AnyOperation(Engine& engine, std::span<SimOperation* const> parts)
      : SimOperation(engine, parts.front()->rank), parts_(parts.begin(), parts.end()) {
    for (SimOperation* part : parts_) {
      CHECK(part->rank == rank, "rank {} waits for an operation of rank {}", rank, part->rank);
      part->watcher = this;
    }
  }
  ~AnyOperation() override {
    for (SimOperation* part : parts_) part->watcher = nullptr;
  }
  std::string name() const override { return fmt::format("any of {} operations", parts_.size()); }
  std::string late() const override {
    constexpr size_t kNamed = 4;
    std::vector<std::string> texts;
    for (size_t i = 0; i < std::min(kNamed, parts_.size()); ++i) texts.push_back(parts_[i]->name() + ": " + parts_[i]->late());
    if (parts_.size() > kNamed) texts.push_back(fmt::format("and {} more", parts_.size() - kNamed));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

 private:
  std::vector<SimOperation*> parts_;
};

}  // namespace

Engine::Engine(const Scenario& scenario, bool traced)
    : scenario_(scenario), cluster_(scenario), ranks_(static_cast<size_t>(scenario.ranks)) {
  trace.enabled = traced;
  core_ = std::max(0, sched_getcpu());
  slots_ = scenario.threads > 0 ? scenario.threads : usable_cores();
  out_free_.resize(static_cast<size_t>(cluster_.nodes()) + ranks_.size());
  in_free_.resize(out_free_.size());
  collective_free_.resize(static_cast<size_t>(cluster_.nodes()));
  std::vector<int> all;
  for (int r = 0; r < scenario.ranks; ++r) {
    Rank& rank_r = rank(r);
    rank_r.id = r;
    rank_r.node = cluster_.node_of(r);
    rank_r.speed = cluster_.speed(r);
    for (const Straggler& s : scenario.stragglers)
      if (s.rank == r) rank_r.slow.push_back({at_seconds(s.from_s), at_seconds(s.until_s), s.factor});
    all.push_back(r);
  }
  crashes_ = scenario.crashes;
  std::stable_sort(crashes_.begin(), crashes_.end(),
                   [](const Crash& a, const Crash& b) { return a.at_s != b.at_s ? a.at_s > b.at_s : a.rank > b.rank; });
  world_group_ = make_group(std::move(all));
}

// Collectives that never ended know their group, which knows them.
Engine::~Engine() {
  for (const auto& weak : groups_)
    if (const auto group = weak.lock()) group->meetings.clear();
}

std::shared_ptr<Group> Engine::make_group(std::vector<int> ranks) {
  auto group = std::make_shared<Group>();
  group->id = static_cast<int>(groups_.size());
  groups_.push_back(group);
  group->next.resize(ranks.size());
  for (const int r : ranks) group->nodes.push_back(cluster_.node_of(r));
  std::sort(group->nodes.begin(), group->nodes.end());
  group->nodes.erase(std::unique(group->nodes.begin(), group->nodes.end()), group->nodes.end());
  group->ranks = std::move(ranks);
  return group;
}

void Engine::run(const std::function<void(World&)>& rank_main) {
  std::vector<std::thread> threads;
  {
    Lock lock(mutex_);
    for (Rank& r : ranks_) push(0, wake, r.id, nullptr);
    try {
      for (Rank& r : ranks_) threads.emplace_back([this, &r, &rank_main] { rank_thread(r, rank_main); });
    } catch (const std::system_error& e) {
      // The threads that there are end without having run.
      for (Rank& r : ranks_) r.crashed = true;
      for (Rank& r : ranks_) r.baton.post();
      lock.unlock();
      for (std::thread& t : threads) t.join();
      throw Error(fmt::format("cannot start the {} threads of the simulated ranks: {}; simulate fewer ranks", ranks_.size(), e.what()));
    }
    pass(lock, dispatch());
    lock.lock();
    all_finished_.wait(lock, [&] { return finished_ == static_cast<int>(ranks_.size()); });
  }
  for (std::thread& t : threads) t.join();
}

SimulationResult Engine::result() {
  if (first_error_) std::rethrow_exception(first_error_);
  SimulationResult result;
  for (Rank& r : ranks_) {
    r.report.traffic.waited_ns = r.report.waited_ns;
    result.virtual_ns = std::max(result.virtual_ns, r.report.finished_ns);
    result.ranks.push_back(r.report);
  }
  result.trace_hash = hash_.value();
  result.messages = messages_;
  result.events = event_count_;
  return result;
}

void Engine::rank_thread(Rank& r, const std::function<void(World&)>& rank_main) {
  if (scenario_.timing_only) stay_on(core_);
  r.baton.wait();
  std::exception_ptr error;
  if (!r.crashed) {
    try {
      World world = make_world(*this, r.id);
      rank_main(world);
    } catch (const CrashSignal&) {
    } catch (...) {
      error = std::current_exception();
    }
  }
  try {
    if (r.in_piece) end(r.id);  // a body threw between begin and end
    enter(r.id);                // catches up with its own time
  } catch (const CrashSignal&) {
  }
  Lock lock(mutex_);
  if (!r.crashed) {
    if (error) fail(r, error);
    r.report.finished_ns = now_;
  }
  r.state = Rank::finished;
  ++finished_;
  if (finished_ == static_cast<int>(ranks_.size())) all_finished_.notify_one();
  if (!r.crashed) pass(lock, dispatch());
}

void Engine::fail(Rank& r, const std::exception_ptr& error) {
  r.report.error = text_of(error);
  hash(failure_event, r.id, 0, 0);
  fail_all(error, fmt::format("rank {} ({}) failed: {}", r.id, host_name(r.node), r.report.error));
}

// The run has failed: who waits, or will, gets to know why.
void Engine::fail_all(const std::exception_ptr& error, std::string text) {
  if (first_error_) return;
  first_error_ = error;
  failure_ = std::move(text);
  for (Rank& other : ranks_)
    if (other.waits_for) end_wait(other, failure_);
}

Engine::Lock Engine::enter(int id) {
  Lock lock(mutex_);
  Rank& r = rank(id);
  if (r.crashed) throw CrashSignal();
  CHECK(!r.in_piece && r.state == Rank::running, "rank {} calls its communicator between begin and end of a piece of computing", id);
  if (r.now > now_) {
    make_ready(r, r.now);
    give_away(lock, r);
  }
  return lock;
}

// Leaves the baton to whoever is next, and comes back when it is r's turn.
void Engine::give_away(Lock& lock, Rank& r) {
  Rank* next = dispatch();
  if (next != &r) {
    pass(lock, next);
    take(lock, r);
  }
}

// Wakes the next rank, without the lock, for which it would only have to wait.
void Engine::pass(Lock& lock, Rank* next) {
  lock.unlock();
  if (next) next->baton.post();
}

void Engine::take(Lock& lock, Rank& r) {
  r.baton.wait();
  lock.lock();
  if (r.crashed) throw CrashSignal();
}

void Engine::make_ready(Rank& r, Time at) {
  r.state = Rank::ready;
  push(at, wake, r.id, nullptr);
}

Rank* Engine::hand_over(Rank& r, Time at) {
  now_ = r.now = at;
  r.state = Rank::running;
  return &r;
}

void Engine::push(Time at, Kind kind, int rank, Message* message, std::shared_ptr<SimOperation> op) {
  events_.push({at, next_number_++, kind, rank, message, std::move(op)});
}

// What the network does until it is a rank's turn; that rank, or null if its body still computes or nobody is left.
Rank* Engine::dispatch() {
  for (;;) {
    if (events_.empty()) {
      const bool waiting = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.waits_for != nullptr; });
      if (!waiting) return nullptr;
      nothing_left();
      continue;
    }
    const Event& top = events_.top();
    if (!crashes_.empty() && at_seconds(crashes_.back().at_s) <= top.time) {
      crash_next();
      continue;
    }
    if (next_deadline(top.time)) continue;
    if (top.kind == wake) {
      Rank& r = rank(top.rank);
      const Time at = top.time;
      if (!r.crashed && r.state == Rank::computing && !r.body_ended) {
        awaited_ = &r;
        return nullptr;
      }
      events_.pop();
      if (r.crashed) continue;
      return hand_over(r, at);
    }
    Event event = top;
    events_.pop();
    now_ = event.time;
    ++event_count_;
    try {
      handle(event);
    } catch (...) {
      const auto error = std::current_exception();
      fail_all(error, fmt::format("a message or sum failed: {}", text_of(error)));
    }
  }
}

// Ends the wait whose deadline is next, if that is before `before`.
bool Engine::next_deadline(Time before) {
  while (!deadlines_.empty() && deadlines_.top().first < before) {
    Rank& r = rank(deadlines_.top().second);
    const Time at = deadlines_.top().first;
    deadlines_.pop();
    if (r.armed == at) r.armed = INT64_MAX;
    if (!r.waits_for) continue;
    if (r.deadline > at) {
      arm_deadline(r);  // the entry was of an earlier wait
      continue;
    }
    now_ = std::max(now_, at);
    const SimOperation& op = *r.waits_for;
    end_wait(r, fmt::format("rank {} ({}): {} waited {} s; {}", r.id, host_name(r.node), op.name(),
                            1e-9 * static_cast<double>(now_ - r.wait_began), op.late()));
    return true;
  }
  return false;
}

void Engine::arm_deadline(Rank& r) {
  if (r.armed <= r.deadline) return;
  r.armed = r.deadline;
  deadlines_.emplace(r.deadline, r.id);
}

// Nobody can go on: after a crash the others wait for their deadlines, otherwise they wait for each other.
void Engine::nothing_left() {
  if (any_crashed_ && next_deadline(INT64_MAX)) return;
  std::string text = "deadlock: ";
  int listed = 0, waiting = 0;
  for (const Rank& r : ranks_) {
    if (!r.waits_for || ++waiting > 16) continue;
    text += fmt::format("{}rank {} waits for {}: {}", listed++ ? "; " : "", r.id, r.waits_for->name(), r.waits_for->late());
  }
  if (waiting > listed) text += fmt::format("; and {} ranks more", waiting - listed);
  for (Rank& r : ranks_)
    if (r.waits_for) end_wait(r, text);
}

void Engine::crash_next() {
  const Crash crash = crashes_.back();
  crashes_.pop_back();
  now_ = std::max(now_, at_seconds(crash.at_s));
  Rank& r = rank(crash.rank);
  if (r.crashed || r.state == Rank::finished) return;
  r.crashed = any_crashed_ = true;
  r.waits_for = nullptr;
  r.report.finished_ns = now_;
  r.report.error = fmt::format("crashed at {} s, as the scenario says", crash.at_s);
  hash(crash_event, r.id, 0, 0);
  if (r.state != Rank::computing || r.body_ended) r.baton.post();  // else its thread finds out when the body has ended
}

void Engine::complete(SimOperation& op) {
  op.complete = true;
  op.ended = ++ended_;
  Rank& r = rank(op.rank);
  if (r.waits_for && (r.waits_for == &op || r.waits_for == op.watcher)) end_wait(r, "");
}

void Engine::end_wait(Rank& r, std::string error) {
  r.waits_for = nullptr;
  r.peer_error = std::move(error);
  make_ready(r, now_);
}

bool Engine::done(SimOperation& op) {
  Lock lock = enter(op.rank);
  if (op.complete) return true;
  if (first_error_) throw PeerError(failure_);
  Rank& r = rank(op.rank);
  make_ready(r, now_ + kPoll);
  give_away(lock, r);
  return op.complete;
}

void Engine::wait(SimOperation& op, double deadline_s) {
  Lock lock = enter(op.rank);
  if (!op.complete) wait(lock, op, deadline_s);
}

size_t Engine::wait_any(std::span<SimOperation* const> parts, double deadline_s) {
  Lock lock = enter(parts.front()->rank);
  const auto first = [&] {
    size_t best = parts.size();
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i]->ended > 0 && (best == parts.size() || parts[i]->ended < parts[best]->ended)) best = i;
    return best;
  };
  if (const size_t i = first(); i < parts.size()) return i;
  const auto any = std::make_shared<AnyOperation>(*this, parts);
  wait(lock, *any, deadline_s);
  return first();
}

// Until op has ended, which it has not yet, or one of its parts.
void Engine::wait(Lock& lock, SimOperation& op, double deadline_s) {
  if (first_error_) throw PeerError(failure_);
  Rank& r = rank(op.rank);
  const Time began = now_;
  r.state = Rank::waiting;
  r.waits_for = &op;
  r.wait_began = now_;
  r.deadline = now_ + at_seconds(deadline_s);
  arm_deadline(r);
  const auto keep = op.shared_from_this();
  give_away(lock, r);
  r.report.waited_ns += now_ - began;
  hash(wait_event, r.id, began, 0);
  trace.add(r.id, Trace::compute, "wait", began, now_);
  if (!r.peer_error.empty()) throw PeerError(std::exchange(r.peer_error, ""));
}

Time Engine::piece_time(Rank& r, const Work& work) {
  const ComputeModel& c = scenario_.compute;
  const auto over = [](double amount, double giga_per_s) { return giga_per_s > 0 ? amount / giga_per_s : 0.0; };  // ns
  double ns = 0;
  switch (work.kind) {
    case Work::forward:
      ns = over(work.flops, c.forward_gflops) + over(work.bytes, c.memory_gb_s);
      break;
    case Work::backward:
      ns = over(work.flops, c.backward_gflops) + over(work.bytes, c.memory_gb_s);
      break;
    case Work::update:
      ns = over(work.bytes, c.update_gb_s);
      break;
    case Work::memory:
      ns = over(work.bytes, c.memory_gb_s);
      break;
  }
  ns = (ns + 1e3 * c.piece_us) / r.speed;
  if (scenario_.jitter > 0) {  // log-normal with mean 1
    const double variance = std::log1p(scenario_.jitter * scenario_.jitter);
    Random random(scenario_.seed, static_cast<uint64_t>(r.id) << 32 | r.pieces);
    ns *= std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  }
  ++r.pieces;
  return finish(r.now, ns, r.slow) - r.now;
}

void Engine::begin(int id, const Work& work) {
  {
    Lock lock(mutex_);
    Rank& r = rank(id);
    if (r.crashed) throw CrashSignal();
    CHECK(!r.in_piece && r.state == Rank::running, "rank {} begins a piece of computing within another", id);
    r.piece_began = r.now;
    r.piece = piece_time(r, work);
    r.piece_kind = work.kind;
    r.report.computed_ns += r.piece;
    r.in_piece = true;
    hash(static_cast<uint8_t>(piece_event), id, r.piece_began, r.piece);
    trace.add(id, Trace::compute, kPieceNames[work.kind], r.piece_began, r.piece_began + r.piece);
    if (scenario_.timing_only) return;  // nothing will be computed: nobody gains from having the baton meanwhile
    r.state = Rank::computing;
    r.body_ended = false;
    push(r.now + r.piece, wake, id, nullptr);
    pass(lock, dispatch());
    lock.lock();
    slot_free_.wait(lock, [&] { return slots_ > 0; });
    --slots_;
  }
}

void Engine::end(int id) {
  Lock lock(mutex_);
  Rank& r = rank(id);
  CHECK(r.in_piece, "rank {} ends a piece of computing that it has not begun", id);
  r.in_piece = false;
  if (scenario_.timing_only) {
    r.now += r.piece;  // its next call of a communicator waits until the others are there too
    return;
  }
  ++slots_;
  slot_free_.notify_one();
  if (r.crashed) throw CrashSignal();
  r.body_ended = true;
  if (awaited_ != &r) {
    lock.unlock();
    return take(lock, r);
  }
  awaited_ = nullptr;
  give_away(lock, r);
}

void Engine::sleep_until(int id, Time at) {
  Lock lock = enter(id);
  if (at <= now_) return;
  Rank& r = rank(id);
  make_ready(r, at);
  give_away(lock, r);
}

std::string Engine::lateness(int id, const std::string& has_not) const {
  const Rank& r = ranks_[static_cast<size_t>(id)];
  std::string text = fmt::format("rank {} ({}) {}", id, host_name(r.node), has_not);
  if (r.crashed)
    text += ": it has crashed";
  else if (r.state == Rank::finished)
    text += ": it has ended";
  else if (r.phase)
    text += fmt::format(": it is in '{}' at update {}", r.phase, r.step);
  return text;
}

void Engine::hash(uint8_t kind, int id, int64_t peer, int64_t bytes) {
  hash_.add(static_cast<uint64_t>(now_));
  hash_.add(static_cast<uint64_t>(id) << 8 | kind);
  hash_.add(static_cast<uint64_t>(peer));
  hash_.add(static_cast<uint64_t>(bytes));
}

bool SimOperation::done() { return engine.done(*this); }
void SimOperation::wait(double deadline_s) { engine.wait(*this, deadline_s); }
size_t SimOperation::wait_any(std::span<Operation* const> operations, double deadline_s) {
  std::vector<SimOperation*> parts;
  for (Operation* operation : operations) parts.push_back(static_cast<SimOperation*>(operation));
  return engine.wait_any(parts, deadline_s);
}

}  // namespace starling::sim
