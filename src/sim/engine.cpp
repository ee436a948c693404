// The baton: whose turn it is, and what happens when it is nobody's turn.
#include "sim/engine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "base/affinity.h"
#include "sim/group.h"

namespace starling::sim {
namespace {

constexpr double kShared = 0.02;  // below, a rank beside others is as fast as one alone

// Ranks that only time never work at the same time, and waking a thread on the same core is faster.
void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(core), &cores);
  sched_setaffinity(0, sizeof cores, &cores);  // only for speed: may fail
}

thread_local bool rank_crashed = false;

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace

void Engine::crash() {
  rank_crashed = true;
  throw CrashSignal();
}

Engine::Engine(const Scenario& scenario, bool traced)
    : scenario_(scenario), cluster_(scenario), ranks_(static_cast<size_t>(scenario.ranks)) {
  trace.enabled = traced;
  core_ = std::max(0, sched_getcpu());
  slots_ = scenario.threads > 0 ? scenario.threads : usable_cores();
  sharing_ = cluster_.ranks_per_node() > 1 && std::abs(scenario.compute.alone_speed - 1) > kShared;
  out_free_.resize(static_cast<size_t>(cluster_.cards()) + ranks_.size());
  in_free_.resize(out_free_.size());
  collective_free_.resize(static_cast<size_t>(cluster_.cards()));
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
  for (const LinkFault& fault : scenario.link_faults) cuts_ = cuts_ || fault.factor == 0;
  crashes_ = scenario.crashes;
  std::stable_sort(crashes_.begin(), crashes_.end(),
                   [](const Crash& a, const Crash& b) { return a.at_s != b.at_s ? a.at_s > b.at_s : a.rank > b.rank; });
  world_group_ = make_group(std::move(all));
}

// Breaks reference cycles: collectives that never ended refer to their group, which refers to them.
Engine::~Engine() {
  for (const auto& weak : groups_)
    if (const auto group = weak.lock()) group->meetings.clear();
}

std::shared_ptr<Group> Engine::make_group(std::vector<int> ranks) {
  auto group = std::make_shared<Group>();
  group->id = static_cast<int>(groups_.size());
  groups_.push_back(group);
  group->next.resize(ranks.size());
  for (const int r : ranks) group->cards.push_back(cluster_.card_of(r));
  std::sort(group->cards.begin(), group->cards.end());
  group->cards.erase(std::unique(group->cards.begin(), group->cards.end()), group->cards.end());
  group->within_a_node =
      std::all_of(ranks.begin(), ranks.end(), [&](int r) { return cluster_.node_of(r) == cluster_.node_of(ranks.front()); });
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
      // The threads that exist already end without having run.
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
  SimulationResult result;
  result.error = first_error_;
  if (first_error_) result.failure = text_of(first_error_);
  for (Rank& r : ranks_) {
    r.report.traffic.waited_ns = r.report.waited_ns;
    result.virtual_ns = std::max(result.virtual_ns, r.report.finished_ns);
    result.ranks.push_back(r.report);
  }
  result.trace_hash = hash_.value();
  result.messages = messages_;
  result.events = event_count_;
  result.lost = lost_, result.delayed = delayed_, result.doubled = doubled_;
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

// The run has failed: every rank that waits, or will wait, learns why.
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
  if (r.crashed) crash();
  CHECK(!r.in_piece && r.state == Rank::running, "rank {} calls its communicator between begin and end of a piece of computing", id);
  if (r.now > now_) {
    make_ready(r, r.now);
    give_away(lock, r);
  }
  return lock;
}

// Gives the baton to the next rank, and returns when it is r's turn.
void Engine::give_away(Lock& lock, Rank& r) {
  Rank* next = dispatch();
  if (next != &r) {
    pass(lock, next);
    take(lock, r);
  }
}

// Wakes the next rank without holding the lock, which it would only have to wait for.
void Engine::pass(Lock& lock, Rank* next) {
  lock.unlock();
  if (next) next->baton.post();
}

void Engine::take(Lock& lock, Rank& r) {
  r.baton.wait();
  lock.lock();
  if (r.crashed) crash();
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
  if (kind == wake) this->rank(rank).wake_number = next_number_;
  events_.push({at, next_number_++, kind, rank, message, std::move(op)});
}

// Carries out what the network does until it is a rank's turn. Returns that rank, or null if its body still computes or nobody is left.
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
      if (sharing_ && top.number != r.wake_number) {
        events_.pop();
        continue;
      }
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

// Nobody can continue: after a crash the others wait for their deadlines, otherwise they wait for each other.
void Engine::nothing_left() {
  if (any_crashed_ && next_deadline(INT64_MAX)) return;
  std::string text = "deadlock: ";
  int listed = 0, waiting = 0;
  for (const Rank& r : ranks_) {
    if (!r.waits_for || ++waiting > 16) continue;
    text += fmt::format("{}rank {} waits for {}: {}", listed++ ? "; " : "", r.id, r.waits_for->name(), r.waits_for->late());
  }
  if (waiting > listed) text += fmt::format("; and {} more ranks", waiting - listed);
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
  r.crashed_at = now_;
  r.waits_for = nullptr;
  if (std::exchange(r.shares, false)) share_node(r.node);
  r.report.finished_ns = now_;
  r.report.error = fmt::format("crashed at {} s, as the scenario says", crash.at_s);
  hash(crash_event, r.id, 0, 0);
  for (Rank& other : ranks_)
    if (other.waits_for && other.waits_for->needs(r.id)) {
      other.deadline = std::min(other.deadline, notices(other, *other.waits_for));
      arm_deadline(other);
    }
  if (r.state != Rank::computing || r.body_ended) r.baton.post();  // else its thread finds out when the body has ended
}

void Engine::hash(uint8_t kind, int id, int64_t peer, int64_t bytes) {
  hash_.add(static_cast<uint64_t>(now_));
  hash_.add(static_cast<uint64_t>(id) << 8 | kind);
  hash_.add(static_cast<uint64_t>(peer));
  hash_.add(static_cast<uint64_t>(bytes));
}

}  // namespace starling::sim

bool starling::crashed_rank() { return sim::rank_crashed; }
