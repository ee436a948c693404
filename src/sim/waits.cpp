// Ranks that wait: for an operation, for any of several, until a deadline.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/group.h"

namespace starling::sim {
namespace {

constexpr Time kPoll = 1000;  // ns; the cost of checking an operation that is not done, so that polling ends

// What a rank waits for if it waits for any of several operations. It lives as long as this wait and is woken by the first of them to end.
class AnyOperation : public SimOperation {
 public:
  AnyOperation(Engine& engine, std::span<SimOperation* const> parts)
      : SimOperation(engine, parts.front()->rank), parts_(parts.begin(), parts.end()) {
    silence_s = parts.front()->silence_s;
    for (SimOperation* part : parts_) {
      CHECK(part->rank == rank, "rank {} waits for an operation of rank {}", rank, part->rank);
      part->watcher = this;
    }
  }
  ~AnyOperation() override {
    for (SimOperation* part : parts_) part->watcher = nullptr;
  }
  // As over MPI, a wait for any of several ends too if one of their ranks is lost.
  bool needs(int other) const override {
    return std::any_of(parts_.begin(), parts_.end(), [&](const SimOperation* part) { return !part->complete && part->needs(other); });
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
    end_wait(r, fmt::format("rank {} ({}): {} waited {:.6g} s; {}{}", r.id, host_name(r.node), op.name(),
                            1e-9 * static_cast<double>(now_ - r.wait_began), op.late(), others_lost(op)));
    return true;
  }
  return false;
}

void Engine::arm_deadline(Rank& r) {
  if (r.armed <= r.deadline) return;
  r.armed = r.deadline;
  deadlines_.emplace(r.deadline, r.id);
}

// The rank that is waited for may itself wait for one that is lost.
std::string Engine::others_lost(const SimOperation& op) const {
  std::string text;
  for (const Rank& r : ranks_)
    if (r.crashed && !op.needs(r.id)) text += fmt::format("; rank {} ({}) has crashed", r.id, host_name(r.node));
  return text;
}

// Returns when a rank that waits learns that one that it needs is lost, as by the heartbeats of a real run: however long it would wait.
Time Engine::notices(const Rank& r, const SimOperation& op) const {
  if (!any_crashed_ && !cuts_) return INT64_MAX;
  const Time silence = at_seconds(op.silence_s);
  Time earliest = INT64_MAX;
  for (const Rank& other : ranks_) {
    if (other.id == r.id || (!other.crashed && !cuts_) || !op.needs(other.id)) continue;
    if (other.crashed) earliest = std::min(earliest, std::max(now_, other.crashed_at + silence));
    if (other.node == r.node) continue;
    for (const int node : {other.node, r.node})
      for (const Slowdown& s : cluster_.slow_of_node(node))
        if (std::isinf(s.factor) && s.until > now_ && s.until - s.from > silence)
          earliest = std::min(earliest, std::max(now_, s.from + silence));
  }
  return earliest;
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
  require_heard(op);
  if (!op.complete) wait(lock, op, deadline_s);
}

// As over MPI, what has ended is no comfort if a rank that it needed has been lost for long: else one that always finds something that has
// ended would never notice.
void Engine::require_heard(const SimOperation& op) {
  Rank& r = rank(op.rank);
  if (first_error_ || notices(r, op) > now_) return;
  throw PeerError(fmt::format("rank {} ({}): {} cannot go on; {}", r.id, host_name(r.node), op.name(), op.late()));
}

size_t Engine::wait_any(std::span<SimOperation* const> parts, double deadline_s) {
  Lock lock = enter(parts.front()->rank);
  const auto first = [&] {
    size_t best = parts.size();
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i]->ended > 0 && (best == parts.size() || parts[i]->ended < parts[best]->ended)) best = i;
    return best;
  };
  auto any = any_crashed_ || cuts_ ? std::make_shared<AnyOperation>(*this, parts) : nullptr;
  if (any) require_heard(*any);
  if (const size_t i = first(); i < parts.size()) return i;
  if (!any) any = std::make_shared<AnyOperation>(*this, parts);
  wait(lock, *any, deadline_s);
  return first();
}

// Waits until op, which has not ended yet, has ended, or one of its parts.
void Engine::wait(Lock& lock, SimOperation& op, double deadline_s) {
  if (first_error_) throw PeerError(failure_);
  Rank& r = rank(op.rank);
  const Time began = now_;
  r.state = Rank::waiting;
  r.waits_for = &op;
  r.wait_began = now_;
  r.deadline = std::min(now_ + at_seconds(deadline_s), notices(r, op));
  arm_deadline(r);
  const auto keep = op.shared_from_this();
  give_away(lock, r);
  r.report.waited_ns += now_ - began;
  r.report.longest_wait_ns = std::max(r.report.longest_wait_ns, now_ - began);
  hash(wait_event, r.id, began, 0);
  trace.add(r.id, Trace::compute, "wait", began, now_);
  if (!r.peer_error.empty()) throw PeerError(std::exchange(r.peer_error, ""));
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

bool SimOperation::done() { return engine.done(*this); }
void SimOperation::wait(double deadline_s) { engine.wait(*this, deadline_s); }
size_t SimOperation::wait_any(std::span<Operation* const> operations, double deadline_s) {
  std::vector<SimOperation*> parts;
  for (Operation* operation : operations) parts.push_back(static_cast<SimOperation*>(operation));
  return engine.wait_any(parts, deadline_s);
}

}  // namespace starling::sim
