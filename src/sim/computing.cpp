// Ranks that compute: how long a piece takes according to the model, and begin() and end() around it.
#include <cmath>

#include "base/random.h"
#include "sim/engine.h"

namespace starling::sim {
namespace {

constexpr const char* kPieceNames[] = {"forward", "backward", "update", "memory"};

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
    trace.add(id, kPieceNames[work.kind], r.piece_began, r.piece_began + r.piece, work);
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

}  // namespace starling::sim
