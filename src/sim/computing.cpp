// Ranks that compute: how long a piece takes according to the model, and begin() and end() around it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "sim/engine.h"

namespace starling::sim {
namespace {

constexpr const char* kPieceNames[] = {"forward", "backward", "update", "memory", "coding"};

// A factor on computing times: log-normal with mean 1 and this relative standard deviation, a function of its key.
double drawn(double deviation, uint64_t seed, uint64_t key) {
  const double variance = std::log1p(deviation * deviation);
  Random random(seed, key);
  return std::exp(std::sqrt(variance) * random.normal() - variance / 2);
}

}  // namespace

Time Engine::piece_time(Rank& r, const Work& work) {
  const ComputeModel& c = scenario_.compute;
  const auto over = [](double amount, double giga_per_s) { return giga_per_s > 0 ? amount / giga_per_s : 0.0; };  // ns
  const double weights = c.weights_gb_s < 0 ? c.memory_gb_s : c.weights_gb_s;
  double ns = 0;
  switch (work.kind) {
    case Work::forward:
      ns = over(work.flops, c.forward_gflops) + over(work.bytes, weights);
      break;
    case Work::backward:
      ns = over(work.flops, c.backward_gflops) + over(work.bytes, weights);
      break;
    case Work::update:
      ns = over(work.flops, c.backward_gflops) + over(work.bytes, c.update_gb_s);
      break;
    case Work::memory:
      ns = over(work.bytes, c.memory_gb_s);
      break;
    case Work::coding:
      ns = over(work.bytes, c.coding_gb_s < 0 ? c.memory_gb_s : c.coding_gb_s);
      break;
  }
  ns = (ns + 1e3 * c.piece_us) / r.speed;
  if (scenario_.jitter > 0) ns = with_jitter(r, ns);
  ++r.pieces;
  return finish(r.now, ns + std::exchange(r.stolen_ns, 0), r.slow) - r.now;
}

// Returns how long what takes `ns` on average takes from now on.
double Engine::with_jitter(const Rank& r, double ns) const {
  const uint64_t own = static_cast<uint64_t>(r.id) << 32;
  if (scenario_.jitter_ms <= 0) return ns * drawn(scenario_.jitter, scenario_.seed, own | r.pieces);
  // One spell of equal speed after the other.
  const double length = std::max(1e6 * scenario_.jitter_ms, 1e4), begins = static_cast<double>(r.now);
  auto spell = static_cast<uint64_t>(begins / length);
  double at = begins;
  for (;; ++spell) {
    const double factor = drawn(scenario_.jitter, scenario_.seed, own | (spell & 0xffffffff)),
                 room = std::max(static_cast<double>(spell + 1) * length - at, 0.0);
    if (ns * factor <= room) return at + ns * factor - begins;
    ns -= room / factor;
    at += room;
  }
}

// A communication thread and a computing one that share a core: what the one takes, the other's next piece of computing takes longer. This
// is measured, and charged, for passes; updates are bound by the memory, and lose little.
void Engine::take_from_computing(Rank& r, double ns) {
  while (!r.passes.empty() && r.passes.front().second <= now_) r.passes.pop_front();
  if (!r.passes.empty() && r.passes.front().first <= now_) r.stolen_ns += scenario_.compute.exchange_slows * ns;
}

void Engine::begin(int id, const Work& work) {
  {
    Lock lock = sharing_ ? enter(id) : Lock(mutex_);  // others of the node notice when it begins
    Rank& r = rank(id);
    if (r.crashed) crash();
    CHECK(!r.in_piece && r.state == Rank::running, "rank {} begins a piece of computing within another", id);
    r.piece_began = r.now;
    r.piece = piece_time(r, work);
    if (scenario_.compute.exchange_slows > 0 && (work.kind == Work::forward || work.kind == Work::backward))
      r.passes.emplace_back(r.now, r.now + r.piece);
    r.in_piece = true;
    r.work = work;
    if (sharing_)
      start_sharing(r);
    else
      piece_timed(r);
    if (scenario_.timing_only) return;  // nothing will be computed: nobody gains from having the baton meanwhile
    r.state = Rank::computing;
    r.body_ended = false;
    if (!sharing_) push(r.now + r.piece, wake, id, nullptr);
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
    if (!sharing_) {
      r.now += r.piece;  // its next call of a communicator waits until the others are there too
      return;
    }
    r.state = Rank::ready;
    give_away(lock, r);
    return stop_sharing(r);
  }
  ++slots_;
  slot_free_.notify_one();
  if (r.crashed) crash();
  r.body_ended = true;
  if (awaited_ != &r) {
    lock.unlock();
    take(lock, r);
  } else {
    awaited_ = nullptr;
    give_away(lock, r);
  }
  if (sharing_) stop_sharing(r);
}

// Records a piece whose duration is known.
void Engine::piece_timed(Rank& r) {
  r.report.computed_ns += r.piece;
  hash(static_cast<uint8_t>(piece_event), r.id, r.piece_began, r.piece);
  trace.add(r.id, kPieceNames[r.work.kind], r.piece_began, r.piece_began + r.piece, r.work);
}

// Rates are measured while all ranks of a node compute; one that computes while others wait is faster, up to alone_speed. So a piece ends
// earlier or later whenever another one of the node begins or ends.
void Engine::start_sharing(Rank& r) {
  r.shares = true;
  r.work_left = static_cast<double>(r.piece);
  r.work_at = now_;
  r.share_speed = 0;
  share_node(r.node);
}

void Engine::stop_sharing(Rank& r) {
  r.shares = false;
  r.piece = r.now - r.piece_began;
  if (!r.passes.empty() && r.passes.back().first == r.piece_began) r.passes.back().second = r.now;
  piece_timed(r);
  share_node(r.node);
}

void Engine::share_node(int node) {
  const int all = cluster_.ranks_per_node(), first = node * all, end = std::min(first + all, scenario_.ranks);
  int computing = 0;
  for (int id = first; id < end; ++id) computing += rank(id).shares;
  if (computing == 0) return;
  // In between, as if the node's capacity were divided equally: exactly so where a quota limits all ranks together.
  const double others = (static_cast<double>(all) / computing - 1) / (all - 1);
  const double speed = 1 + (scenario_.compute.alone_speed - 1) * others;
  for (int id = first; id < end; ++id) {
    Rank& r = rank(id);
    if (!r.shares || r.share_speed == speed) continue;
    r.work_left -= static_cast<double>(now_ - r.work_at) * r.share_speed;
    r.work_at = now_;
    r.share_speed = speed;
    push(now_ + whole_ns(std::max(r.work_left, 0.0) / speed), wake, id, nullptr);
  }
}

void Engine::sleep_until(int id, Time at) {
  Lock lock = enter(id);
  if (at <= now_) return;
  Rank& r = rank(id);
  make_ready(r, at);
  give_away(lock, r);
}

}  // namespace starling::sim
