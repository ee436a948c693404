#include "measure/bench.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/product_times.h"
#include "backend/device_choice.h"
#include "backend/limits.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/task_progress.h"
#include "replica/replica.h"

namespace starling {

std::vector<Batch> synthetic_batches(const BenchTrainOptions& o, int64_t count) {
  Random random(o.seed, 0xbe);
  std::vector<std::pair<int, int>> lengths;
  int64_t tokens = 0;
  const auto enough = [&] {
    return o.batch_sentences > 0 ? static_cast<int64_t>(lengths.size()) >= count * o.batch_sentences : tokens >= count * o.batch_tokens;
  };
  while (!enough()) {
    if (o.even) {
      lengths.emplace_back(o.mean_length, o.mean_length);
      tokens += o.mean_length;
      continue;
    }
    const double length = static_cast<double>(o.mean_length) * std::exp(0.5 * random.normal() - 0.125);
    const int target = std::clamp(static_cast<int>(std::lround(length)), 2, 100);
    const int source = std::clamp(static_cast<int>(std::lround(target * (0.8 + 0.4 * random.uniform()))), 2, 100);
    lengths.emplace_back(target, source);
    tokens += target;
  }
  std::sort(lengths.begin(), lengths.end());
  std::vector<Batch> batches(1);
  for (auto [target, source] : lengths) {
    const Batch& last = batches.back();
    if (o.batch_sentences > 0 ? last.target.sentences() == o.batch_sentences : last.target.count() + target > o.batch_tokens)
      batches.emplace_back();
    Batch& batch = batches.back();
    for (auto [side, length] : {std::pair(&batch.source, source), {&batch.target, target}}) {
      std::vector<int32_t> sentence(length);
      for (auto& t : sentence) t = static_cast<int32_t>(3 + random.below(o.vocabulary - 3));
      side->append(sentence.data(), sentence.data() + length);
    }
    batch.sample_ids.push_back(static_cast<int64_t>(random.below(1u << 30)));
  }
  if (o.batch_sentences == 0 && batches.size() > 1 && batches.back().target.count() < o.batch_tokens / 2) batches.pop_back();
  return batches;
}

namespace {

// Sums the time spent in the optimizer.
class UpdateClock final : public WallClock {
 public:
  void begin(const Work& work) override { begun_ = work.kind == Work::update ? now_ns() : -1; }
  void end() override {
    if (begun_ >= 0) update_ns += now_ns() - begun_;
  }
  int64_t update_ns = 0;

 private:
  int64_t begun_ = -1;
};

// Measures a processor in both types whatever its activations are, a card only in the type of its activations.
BenchLimits limits_of(Backend& backend) {
  BenchLimits limits;
  limits.machine = backend.describe();
  if (backend.memory().host()) {
    limits.f32_flops = peak_product_rate(DType::f32);
    if (cpu_has_bf16()) limits.bf16_flops = peak_product_rate(DType::bf16);
  } else {
    (backend.activation() == DType::bf16 ? limits.bf16_flops : limits.f32_flops) = peak_product_rate(backend);
  }
  limits.memory_rate = memory_rate(backend);
  return limits;
}

}  // namespace

BenchLimits bench_limits(const std::string& device, const std::string& precision, int threads) {
  return limits_of(*make_backend(DeviceChoice{precision, threads, device}));
}

BenchTrainResult bench_train(const BenchTrainOptions& o) {
  if (o.vocabulary < 16)
    throw ConfigError(fmt::format("a vocabulary of {} pieces is too small for the benchmark; use at least 16", o.vocabulary));
  BenchTrainResult result;
  const auto backend = make_backend(DeviceChoice{o.precision, o.threads, o.device});
  const bool card = !backend->memory().host();
  const int64_t usable = card ? backend->memory().usable().bytes : 0;
  result.machine = backend->describe();
  const std::vector<Batch> batches = synthetic_batches(o, 8);
  result.batches = static_cast<int64_t>(batches.size());

  StepOptions step_options;
  step_options.optimizer.learning_rate = 1e-4;
  step_options.optimizer.optimizer = o.optimizer;
  {
    const auto model = make_model(o.model, {o.vocabulary, o.vocabulary}, *backend, o.seed, true);
    result.parameters = model->parameters().count();
    World world = make_local_world();
    auto clock = std::make_unique<UpdateClock>();
    int64_t& update_ns = clock->update_ns;
    world.clock = std::move(clock);
    Replica replica(*model, step_options, world);
    for (const Batch& b : batches) replica.step({&b, 1});  // warms up every shape
    update_ns = 0;
    const double start = steady_seconds();
    double elapsed = 0;
    int64_t source = 0, target = 0;
    // Whole rounds, so that every batch counts equally.
    while (result.steps == 0 || elapsed < o.seconds) {
      for (const Batch& b : batches) {
        const StepResult r = replica.step({&b, 1});
        source += static_cast<int64_t>(r.totals.source_tokens);
        target += static_cast<int64_t>(r.totals.tokens);
        ++result.steps;
      }
      elapsed = steady_seconds() - start;
    }
    result.step_seconds = elapsed / static_cast<double>(result.steps);
    if (!card) result.optimizer_seconds = 1e-9 * static_cast<double>(update_ns) / static_cast<double>(result.steps);
    result.target_tokens_per_second = static_cast<double>(target) / elapsed;
    result.source_tokens_per_second = static_cast<double>(source) / elapsed;
    result.peak_bytes = card ? usable - backend->memory().usable().bytes : peak_memory().own;
  }
  double attention_flops = 0;
  {
    ProfiledBackend profiled(*backend);
    const auto model = make_model(o.model, {o.vocabulary, o.vocabulary}, profiled, o.seed, true);
    World world = make_local_world();
    Replica replica(*model, step_options, world);
    for (const Batch& b : batches) replica.step({&b, 1});
    profiled.clear();
    const double start = steady_seconds();
    for (const Batch& b : batches) replica.step({&b, 1});
    result.profiled_seconds = steady_seconds() - start;
    result.profiled_steps = result.batches;
    result.profile = profiled.times;
    const double rounds = static_cast<double>(result.batches);
    for (const auto& [shape, calls] : profiled.products) {
      result.product_seconds += product_seconds(*backend, shape) * static_cast<double>(calls) / rounds;
      result.product_flops += product_flops(shape) * static_cast<double>(calls) / rounds;
    }
    for (const auto& [shape, heads] : profiled.attentions) {
      attention_flops += attention_product_flops(shape) * static_cast<double>(heads) / rounds;
    }
  }
  const BenchLimits limits = limits_of(*backend);
  result.f32_flops = limits.f32_flops;
  result.bf16_flops = limits.bf16_flops;
  result.memory_rate = limits.memory_rate;
  // oneDNN's batched products of such small matrices run far below its peak; the peak rate is the strictest yardstick.
  result.activation_flops = backend->activation() == DType::bf16 ? result.bf16_flops : result.f32_flops;
  result.attention_product_seconds = attention_flops / result.activation_flops;
  result.product_seconds += result.attention_product_seconds;
  result.product_flops += attention_flops;
  result.efficiency = result.product_seconds / result.step_seconds;
  return result;
}

double floor_seconds(const OpTime& time, const BenchTrainResult& r) {
  const auto over = [](double amount, double rate) { return amount > 0 && rate > 0 ? amount / rate : 0.0; };
  return std::max(over(time.flops, r.activation_flops), over(time.bytes, r.memory_rate));
}

}  // namespace starling
