#include "measure/rate_meter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "comm/schedule.h"
#include "data/batches.h"
#include "strategies/compressed_exchange.h"

namespace starling {
namespace {

constexpr int64_t kPart = 1 << 20, kParts = 12, kCoded = 4;  // elements, and parts to add and to code: more than caches hold

Work operator+(const Work& a, const Work& b) { return {b.kind, a.flops + b.flops, a.bytes + b.bytes}; }

double mean(std::span<const double> x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }

}  // namespace

Shares in_small_passes(const Shares& shares) {
  constexpr int64_t kSmall = 128;  // tokens
  Shares small;
  for (const auto& share : shares) {
    small.emplace_back();
    for (const Batch& batch : share)
      for (Batch& part : split(batch, std::clamp<int64_t>(batch.target.count() / 2, 1, kSmall))) small.back().push_back(std::move(part));
  }
  return small;
}

MeasuredPasses count_passes(const ComputeCost& cost, const Shares& shares) {
  MeasuredPasses passes;
  for (const auto& share : shares)
    for (const Batch& batch : share) {
      const PassRows rows = cost.rows(batch);
      const bool packs = &batch == share.data();
      passes.forward = passes.forward + cost.forward(rows, packs);
      passes.backward = passes.backward + cost.backward(rows, -1, packs);
    }
  return passes;
}

Calibration rates_of(double parameter_bytes, double cached_rate, double update_s, const MeasuredPasses& whole,
                     const MeasuredPasses& small) {
  // The factors by which time and bytes of small passes would grow if only their products counted.
  const double forward = small.forward.flops / whole.forward.flops, backward = small.backward.flops / whole.backward.flops;
  const double longer = small.forward_s + small.backward_s - forward * whole.forward_s - backward * whole.backward_s;
  const double more = small.forward.bytes + small.backward.bytes - forward * whole.forward.bytes - backward * whole.backward.bytes;
  const double weights_rate = longer * cached_rate > more ? more / longer : cached_rate;
  const double forward_moves = whole.forward.bytes / weights_rate, backward_moves = whole.backward.bytes / weights_rate;
  // Moving weights must not take up nearly the whole time: with too few tokens the rates would be meaningless.
  if (whole.forward_s < 1.2 * forward_moves || whole.backward_s < 1.2 * backward_moves || update_s <= 0)
    throw ConfigError("the steps are too short to measure computing rates; use more tokens per batch");
  Calibration c;
  // The update: seven passes over the flat buffers, and one for the norm.
  c.update_gb_s = 8 * parameter_bytes / update_s / 1e9;
  c.weights_gb_s = weights_rate / 1e9;
  c.forward_gflops = whole.forward.flops / (whole.forward_s - forward_moves) / 1e9;
  c.backward_gflops = whole.backward.flops / (whole.backward_s - backward_moves) / 1e9;
  return c;
}

MemoryWork::MemoryWork(Backend& backend)
    : backend_(backend),
      sums_(4 * kParts * kPart),
      addends_(4 * kParts * kPart),
      layout_(make_layout(Coding::bf16, false, {{0, kPart}}, 0.01, DType::f32)) {
  const auto make = [&](int64_t count, DType type) {
    const Tensor t({count}, type, backend.memory());
    t.zero();
    return t;
  };
  gradients_ = make(kCoded * kPart, DType::f32);
  residuals_ = make(kCoded * kPart, DType::f32);
  sent_ = make(kCoded * kPart, DType::f32);
  codes_ = make(2 * layout_.bytes, DType::i8);
  bad_ = make(1, DType::f64);
  std::memset(sums_.data(), 0, static_cast<size_t>(sums_.bytes()));
  std::memset(addends_.data(), 0, static_cast<size_t>(addends_.bytes()));
  // As unequal as gradients are.
  std::vector<double> values(kPart);
  uint32_t state = 1;
  for (double& value : values) {
    state = state * 1664525 + 1013904223;
    value = std::pow(static_cast<int32_t>(state) * 0x1p-31, 3);
  }
  for (int64_t i = 0; i < kCoded; ++i) gradients_.slice(i * kPart, Shape{kPart}).from_doubles(values);
}

// Adds the first `count` elements of every part, or of the first one over and over.
double MemoryWork::adding_rate(int64_t count, int64_t times, bool same) {
  const Schedule::Local add{Schedule::Local::add, Area::data, 0, Area::scratch, 0, count};
  const WallClock clock;
  const double start = clock.seconds();
  for (int64_t i = 0; i < times; ++i) {
    const int64_t at = same ? 0 : 4 * i * kPart;
    apply(add, DType::f32, sums_.data() + at, addends_.data() + at);
  }
  return static_cast<double>(times * bytes_touched(add, DType::f32)) / (clock.seconds() - start);
}

double MemoryWork::adding_rate() { return adding_rate(kPart, kParts, false); }
double MemoryWork::cached_rate() {
  constexpr int64_t kCached = 64 << 10;  // elements
  adding_rate(kCached, 2, true);
  return adding_rate(kCached, 100, true);
}

double MemoryWork::coding_rate() {
  constexpr int kRanks = 2;
  double bytes = 0;
  const WallClock clock;
  const double start = clock.seconds();
  for (int64_t i = 0; i < kCoded; ++i) {
    const auto part = [&](const Tensor& of) { return of.slice(i * kPart, Shape{kPart}); };
    const Tensor own = codes_.slice(0, Shape{layout_.bytes}), other = codes_.slice(layout_.bytes, Shape{layout_.bytes});
    bad_.zero();
    backend_.compress({&layout_, part(gradients_), part(residuals_), {}, 1, 0, LocalPart::none, 1, own, bad_});
    other.copy_from(own);
    backend_.decompress(layout_, codes_, 1, part(sent_));
    bytes += coding_bytes(layout_, 4, false) + decoding_bytes(layout_, 4, kRanks);
  }
  return bytes / (clock.seconds() - start);
}

double relative_deviation(const std::vector<std::vector<std::vector<double>>>& times) {
  double squares = 0, sum = 0, count = 0, free = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const size_t ranks = times[i].size();
    for (size_t s = 0; ranks > 0 && s < times[i].front().size(); ++s) {
      double all = 0;
      for (const auto& rank : times[i]) all += rank[s];
      sum += all;
      count += static_cast<double>(ranks);
      if (ranks > 1) {
        for (const auto& rank : times[i]) squares += std::pow(rank[s] - all / static_cast<double>(ranks), 2);
        free += static_cast<double>(ranks - 1);
      } else if (i > 0) {
        squares += std::pow(times[i].front()[s] - times[i - 1].front()[s], 2);
        free += 2;
      }
    }
  }
  return free > 0 ? std::sqrt(squares / free) * count / sum : 0;
}

double relative_drift(const std::vector<std::vector<std::vector<double>>>& times) {
  std::vector<double> means;
  for (const auto& round : times) {
    double sum = 0;
    for (const auto& rank : round) sum += mean(rank) / static_cast<double>(round.size());
    means.push_back(sum);
  }
  if (means.size() < 2) return 0;
  double squares = 0;
  for (const double m : means) squares += std::pow(m - mean(means), 2) / static_cast<double>(means.size() - 1);
  return std::sqrt(squares) / mean(means);
}

RateMeter::RateMeter(Replica& replica, Clock& clock, Peers& peers, Shares shares, bool small)
    : replica_(replica), clock_(clock), peers_(peers), whole_(std::move(shares)), all_(small) {
  works_ = std::any_of(whole_.begin(), whole_.end(), [](const auto& share) { return !share.empty(); });
  if (all_) {
    small_ = in_small_passes(whole_);
    memory_.emplace(replica.model().parameters().backend());
  }
  const MeasuredPasses w = count_passes(replica.cost(), whole_), s = count_passes(replica.cost(), small_);
  const double own[] = {works_ ? 1.0 : 0.0, w.forward.flops, w.forward.bytes,  w.backward.flops, w.backward.bytes,
                        s.forward.flops,    s.forward.bytes, s.backward.flops, s.backward.bytes};
  const std::vector<double> of_all = peers.gather(own);
  std::vector<double> sums(std::size(own));
  for (size_t i = 0; i < of_all.size(); ++i) sums[i % sums.size()] += of_all[i];
  workers_ = sums[0];
  for (double& sum : sums) sum /= workers_;
  counted_.forward = {Work::forward, sums[1], sums[2]};
  counted_.backward = {Work::backward, sums[3], sums[4]};
  counted_small_.forward = {Work::forward, sums[5], sums[6]};
  counted_small_.backward = {Work::backward, sums[7], sums[8]};
  std::vector<double> work;
  for (const auto& share : whole_) {
    const MeasuredPasses one = count_passes(replica.cost(), {share});
    work.push_back((one.forward.flops + one.backward.flops) * static_cast<double>(whole_.size()) / (sums[1] + sums[3]));
  }
  work_ = peers.gather(work);
}

double TimedSteps::mean() const { return starling::mean(seconds); }

TimedSteps timed_steps(Replica& replica, Clock& clock, const Shares& shares, const std::function<void()>& on_step) {
  TimedSteps timed;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double start = clock.seconds();
    replica.clear_times();
    replica.step(shares[i]);
    if (i + 1 == shares.size()) replica.model().parameters().wait_for_parameters();
    timed.seconds.push_back(clock.seconds() - start);
    const Replica::Times& t = replica.times();
    timed.besides.push_back(t.total - t.forward - t.backward);
    timed.forward += t.forward;
    timed.backward += t.backward;
    on_step();
  }
  return timed;
}

TimedSteps RateMeter::steps(const Shares& shares) {
  if (works_) return timed_steps(replica_, clock_, shares, on_step);
  return {.seconds = std::vector<double>(shares.size())};
}

void RateMeter::round() {
  const size_t count = whole_.size();
  const auto per_step = static_cast<double>(count);
  Round r;
  double alone = 0;
  peers_.together();
  if (peers_.size() > 1 && peers_.rank() == 0) alone = steps(whole_).mean();
  peers_.together();
  const TimedSteps whole = steps(whole_);
  if (peers_.size() == 1) alone = whole.mean();
  TimedSteps small;
  double adding = 0, cached = 0, coding = 0;
  if (all_) {
    peers_.together();
    small = steps(small_);
    peers_.together();
    adding = memory_->adding_rate();
    cached = memory_->cached_rate();
    peers_.together();
    coding = memory_->coding_rate();
  }
  std::vector<double> own = whole.seconds;
  own.insert(own.end(), {alone, whole.forward / per_step, whole.backward / per_step, small.forward / per_step, small.backward / per_step,
                         adding, cached, coding});
  const std::vector<double> all = peers_.gather(own);
  for (int rank = 0; rank < peers_.size(); ++rank) {
    const std::span<const double> of = std::span(all).subspan(static_cast<size_t>(rank) * own.size(), own.size());
    const std::span<const double> times = of.first(count), rest = of.subspan(count);
    if (rank == 0) {
      r.alone = rest[0];
      r.own = mean(times);
    }
    r.local = std::max(r.local, mean(times));
    r.adding += rest[5] / peers_.size();
    r.cached += rest[6] / peers_.size();
    r.coding += rest[7] / peers_.size();
    r.step += mean(times) / workers_;
    r.forward += rest[1] / workers_;
    r.backward += rest[2] / workers_;
    r.small_forward += rest[3] / workers_;
    r.small_backward += rest[4] / workers_;
    if (mean(times) > 0) {
      std::vector<double>& of_rank = r.steps.emplace_back(times.begin(), times.end());
      // A share without a sentence, of a batch with fewer than there are ranks, counts as if it had its part.
      for (size_t i = 0; i < count; ++i)
        if (const double w = work_[static_cast<size_t>(rank) * count + i]; w > 0) of_rank[i] /= w;
    }
  }
  measurements_.back().push_back(std::move(r));
}

void RateMeter::merge(std::span<const size_t> measurements) {
  std::vector<Round> all;
  for (const size_t i : measurements) all.insert(all.end(), measurements_.at(i).begin(), measurements_.at(i).end());
  measurements_.push_back(std::move(all));
}

double RateMeter::mean_of(double Round::*of) const {
  const std::vector<Round>& rounds = measurements_.back();
  double sum = 0;
  for (const Round& round : rounds) sum += round.*of;
  return rounds.empty() ? 0 : sum / static_cast<double>(rounds.size());
}

double RateMeter::alone() const { return mean_of(&Round::alone); }
double RateMeter::local() const { return mean_of(&Round::local); }
double RateMeter::forward() const { return mean_of(&Round::forward); }
double RateMeter::backward() const { return mean_of(&Round::backward); }
double RateMeter::update() const { return mean_of(&Round::step) - forward() - backward(); }

Calibration RateMeter::rates() const {
  MeasuredPasses whole = counted_, small = counted_small_;
  const auto per_step = static_cast<double>(whole_.size());
  whole.forward_s = per_step * forward();
  whole.backward_s = per_step * backward();
  small.forward_s = per_step * mean_of(&Round::small_forward);
  small.backward_s = per_step * mean_of(&Round::small_backward);
  const double step = mean_of(&Round::step);
  Calibration c =
      rates_of(static_cast<double>(replica_.model().parameters().values().bytes()), mean_of(&Round::cached), update(), whole, small);
  c.memory_gb_s = 1e-9 * mean_of(&Round::adding);
  c.coding_gb_s = 1e-9 * mean_of(&Round::coding);
  c.alone_speed = alone() > 0 ? std::max(mean_of(&Round::own) / alone(), 1.0) : 1;  // less is noise
  std::vector<std::vector<std::vector<double>>> times;
  for (const Round& round : measurements_.back()) times.push_back(round.steps);
  // A step covers parts of two spells of its own length: their mean varies by 2/3 of the variance of one.
  c.jitter = std::sqrt(1.5) * relative_deviation(times);
  c.jitter_ms = 1e3 * step;
  c.drift = relative_drift(times);
  return c;
}

}  // namespace starling
