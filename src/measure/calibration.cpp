#include "measure/calibration.h"

#include <algorithm>

#include "backend/limits.h"
#include "base/error.h"
#include "base/processor_use.h"
#include "comm/schedule.h"
#include "data/batches.h"
#include "decode/model_directory.h"
#include "replica/replica.h"

namespace starling {
namespace {

Work operator+(const Work& a, const Work& b) { return {b.kind, a.flops + b.flops, a.bytes + b.bytes}; }

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

Calibration rates_of(double parameter_bytes, double memory_rate, double update_s, const MeasuredPasses& whole,
                     const MeasuredPasses& small) {
  // The factors by which time and bytes of small passes would grow if only their products counted.
  const double forward = small.forward.flops / whole.forward.flops, backward = small.backward.flops / whole.backward.flops;
  const double longer = small.forward_s + small.backward_s - forward * whole.forward_s - backward * whole.backward_s;
  const double more = small.forward.bytes + small.backward.bytes - forward * whole.forward.bytes - backward * whole.backward.bytes;
  // Weights are never read faster than sums within caches.
  const double weights_rate = longer * memory_rate > more ? more / longer : memory_rate;
  const double forward_moves = whole.forward.bytes / weights_rate, backward_moves = whole.backward.bytes / weights_rate;
  // Moving weights must not take up nearly the whole time: with too few tokens the rates would be meaningless.
  if (whole.forward_s < 1.2 * forward_moves || whole.backward_s < 1.2 * backward_moves || update_s <= 0)
    throw ConfigError("the steps are too short to measure computing rates; use more tokens per batch");
  Calibration c;
  // The update: seven passes over the flat buffers, and one for the norm.
  c.update_gb_s = 8 * parameter_bytes / update_s / 1e9;
  c.memory_gb_s = memory_rate / 1e9;
  c.weights_gb_s = weights_rate / 1e9;
  c.forward_gflops = whole.forward.flops / (whole.forward_s - forward_moves) / 1e9;
  c.backward_gflops = whole.backward.flops / (whole.backward_s - backward_moves) / 1e9;
  return c;
}

double adding_rate() {
  const int64_t count = 4 << 20;
  const Storage data(4 * count), scratch(4 * count);
  const Schedule::Local add{Schedule::Local::add, Area::data, 0, Area::scratch, 0, count};
  apply(add, DType::f32, data.data(), scratch.data());
  const WallClock clock;
  const double start = clock.seconds();
  for (int i = 0; i < 10; ++i) apply(add, DType::f32, data.data(), scratch.data());
  return 10 * static_cast<double>(bytes_touched(add, DType::f32)) / (clock.seconds() - start);
}

namespace {

constexpr double kAgreement = 1.25;  // the larger rate over the smaller; 1.02 to 1.1 on a quiet machine
constexpr size_t kMost = 5;          // measurements

double disagreement(const Calibration& a, const Calibration& b, double Calibration::*rate) {
  return std::max(a.*rate, b.*rate) / std::min(a.*rate, b.*rate);
}

bool agree(const Calibration& a, const Calibration& b) {
  return disagreement(a, b, &Calibration::forward_gflops) <= kAgreement && disagreement(a, b, &Calibration::backward_gflops) <= kAgreement;
}

// Relative time of a forward and a backward pass, which computes twice as much.
double time_of(const Calibration& c) { return 1 / c.forward_gflops + 2 / c.backward_gflops; }

std::string text_of(const Calibration& c) {
  return fmt::format("forward {:.1f} and backward {:.1f} GFLOP/s", c.forward_gflops, c.backward_gflops);
}

}  // namespace

std::string doubt_about(const Calibration& c, double peak_gflops) {
  constexpr double kUnlike = 5;    // both directions are the same kinds of products
  constexpr double kBeyond = 1.3;  // the peak is measured too
  const double ratio = c.backward_gflops / c.forward_gflops;
  if (!(ratio >= 1 / kUnlike && ratio <= kUnlike)) return fmt::format("{} cannot both be right", text_of(c));
  if (peak_gflops > 0 && std::max(c.forward_gflops, c.backward_gflops) > kBeyond * peak_gflops)
    return fmt::format("{} are more than the {:.1f} GFLOP/s of this machine's fastest products", text_of(c), peak_gflops);
  return "";
}

Calibration settled_rates(const std::function<MeasuredRates()>& measure, double peak_gflops, const Say& say) {
  std::vector<Calibration> sound, doubtful;
  std::exception_ptr failure;
  for (size_t attempt = 1; attempt <= kMost; ++attempt) {
    std::string doubt;
    try {
      const MeasuredRates m = measure();
      doubt = doubt_about(m.rates, peak_gflops);
      if (doubt.empty() && !m.disturbance.empty()) doubt = fmt::format("{}, but {}", text_of(m.rates), m.disturbance);
      if (doubt.empty())
        for (const Calibration& earlier : sound)
          if (agree(earlier, m.rates)) return time_of(earlier) < time_of(m.rates) ? earlier : m.rates;
      (doubt.empty() ? sound : doubtful).push_back(m.rates);
      if (doubt.empty() && sound.size() > 1) doubt = fmt::format("{}, and {} before", text_of(m.rates), text_of(sound[sound.size() - 2]));
    } catch (const ConfigError& e) {
      doubt = e.what();
      failure = std::current_exception();
    }
    if (say && !doubt.empty() && attempt < kMost) say(fmt::format("the measurement was disturbed ({}): measuring again", doubt));
  }
  const std::vector<Calibration>& left = sound.empty() ? doubtful : sound;
  if (left.empty()) std::rethrow_exception(failure);
  if (say)
    say(
        fmt::format("warning: {} measurements of the computing rates were disturbed or contradict each other; the fastest one is used, "
                    "but times computed from it may be wrong: measure on a machine without other load",
                    kMost));
  return *std::min_element(left.begin(), left.end(), [](const auto& a, const auto& b) { return time_of(a) < time_of(b); });
}

MeasuredBatches batches_to_measure(int64_t batch_tokens, double seconds, double seconds_per_token) {
  constexpr int64_t kMost = 4, kFewest = 512;  // batches, tokens
  const double tokens = 2 * seconds / 4 / std::max(seconds_per_token, 1e-12);
  MeasuredBatches b;
  b.tokens = std::clamp(static_cast<int64_t>(std::min(tokens, 1e9)), std::min(kFewest, batch_tokens), batch_tokens);
  b.count = std::clamp(static_cast<int64_t>(std::min(tokens, 1e9)) / b.tokens, int64_t{1}, kMost);
  return b;
}

Calibration calibrate(const BenchTrainOptions& given, const Say& say, const std::function<void(double share)>& told) {
  BenchTrainOptions o = given;
  const auto backend = make_backend(DeviceChoice{o.precision, o.threads, "cpu"});
  const auto model = make_model(o.model, {o.vocabulary, o.vocabulary}, *backend, o.seed, true);
  World world = make_local_world();
  StepOptions options;
  options.optimizer.learning_rate = 1e-4;
  Replica replica(*model, options, world);
  const auto seconds_of = [&](const std::vector<Batch>& share) {
    const double start = world.clock->seconds();
    replica.step(share);
    return world.clock->seconds() - start;
  };
  const std::vector<Batch> probe = in_small_passes({synthetic_batches(o, 1)}).front();
  const std::vector<Batch> first{probe.front()};
  seconds_of(first);  // warms up
  const MeasuredBatches batches =
      batches_to_measure(o.batch_tokens, o.seconds / 2, seconds_of(first) / static_cast<double>(first.front().target.count()));
  o.batch_tokens = batches.tokens;
  Shares shares;
  for (Batch& batch : synthetic_batches(o, batches.count)) shares.push_back({std::move(batch)});
  const Shares small = in_small_passes(shares);
  // Of each kind, the fastest round counts; the first one warms up.
  double done = 0;  // steps
  const auto measure = [&](const Shares& all, Replica::Times& fastest) {
    replica.clear_times();
    for (const auto& share : all) {
      replica.step(share);
      if (told) told(std::min(++done / static_cast<double>(6 * all.size()), 1.0));
    }
    if (fastest.steps == 0 || replica.times().total < fastest.total) fastest = replica.times();
  };
  const auto passes = [&](const Shares& all, const Replica::Times& t) {
    MeasuredPasses measured = count_passes(replica.cost(), all);
    measured.forward_s = t.forward;
    measured.backward_s = t.backward;
    return measured;
  };
  const auto once = [&] {
    Replica::Times whole_times, small_times;
    const ProcessorUse before = processor_use();
    const double start = world.clock->seconds();
    do measure(shares, whole_times), measure(small, small_times);
    while (world.clock->seconds() - start < o.seconds / 2);
    const double others = used_by_others(before, processor_use(), world.clock->seconds() - start);
    const double update = (whole_times.total - whole_times.forward - whole_times.backward) / static_cast<double>(shares.size());
    MeasuredRates m{rates_of(static_cast<double>(model->parameters().values().bytes()), adding_rate(), update, passes(shares, whole_times),
                             passes(small, small_times)),
                    ""};
    // The system itself may use up to a tenth of a thread's time.
    if (others > 0.1 * backend->threads() && others + backend->threads() > before.processors + 0.1)
      m.disturbance = fmt::format("other programs used {:.1f} of {} processors", others, before.processors);
    return m;
  };
  Replica::Times warm;
  measure(shares, warm);
  measure(small, warm);
  return settled_rates(once, 1e-9 * peak_product_rate(*backend), say);
}

}  // namespace starling
