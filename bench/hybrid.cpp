// GNMT on several ranks in three ways, whole replicas, layers in stages, and the hybrid of both (bench/plan_accuracy.md), beside
// one rank alone: target tokens/s at equal batches, and at the fastest ones that the memory of a rank allows, the same for all. Simulated
// with rates of one thread of this machine, measured first. What two real ranks do beside their prediction, bench/plan_accuracy.sh shows.
// Usage: bench_hybrid [preset=gnmt-4] [vocabulary=32000] [tokens=1800 of one rank's batch] [ranks=4] [network=10gbe]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "measure/bench_distributed.h"
#include "measure/calibration.h"
#include "measure/forecast.h"
#include "measure/layouts.h"

namespace starling {
namespace {

struct Way {
  const char* name;
  int ranks;
  int64_t stages;
  bool hybrid;
};

LayoutRun run_of(const BenchTrainOptions& one, const Way& way, int64_t tokens, int64_t micro_batches, int64_t pieces) {
  LayoutRun run;
  run.train = one;
  run.train.batch_tokens = tokens;
  run.parallel.pipeline = way.stages, run.parallel.hybrid = way.hybrid;
  if (way.stages > 1) run.parallel.micro_batches = micro_batches, run.parallel.time_pieces = pieces;
  run.micro_tokens = tokens, run.updates = 4;
  return run;
}

struct Best {
  LayoutResult result;
  int64_t micro_batches = 1, pieces = 1;
};

// The fastest way to cut batches of so many tokens that fits into memory; nothing if none does.
std::optional<Best> best_of(const BenchTrainOptions& one, const Way& way, const Scenario& cluster, int64_t tokens, double memory) {
  Scenario scenario = cluster;
  scenario.ranks = way.ranks;
  std::optional<Best> best;
  for (const int64_t m : {1, 2, 4, 8, 16})
    for (const int64_t pieces : {4, 8, 16, 32}) {
      if (way.stages == 1 && (m > 1 || pieces > 4)) continue;
      const LayoutResult r = forecast(run_of(one, way, tokens, m, pieces), scenario);
      if (largest_memory(r) <= memory && (!best || r.tokens_per_second() > best->result.tokens_per_second())) best = {r, m, pieces};
    }
  return best;
}

void show(const Way& way, const std::optional<Best>& best, double alone) {
  if (!best) return fmt::print("  {:<22} does not fit\n", way.name);
  const LayoutResult& r = best->result;
  fmt::print("  {:<22} {:>6.0f} tokens an update, {:>8.1f} tokens/s, {:.2f} x one rank; {:.2f} GiB a rank", way.name, r.tokens,
             r.tokens_per_second(), r.tokens_per_second() / alone, largest_memory(r) / (1 << 30));
  if (way.stages > 1)
    fmt::print(", {} micro-batches, {} pieces, stages compute {:.1f} %", best->micro_batches, best->pieces, 100 * (1 - r.bubble));
  fmt::print("\n");
  std::fflush(stdout);
}

void simulated(const BenchTrainOptions& one, const Scenario& cluster) {
  const int ranks = cluster.ranks;
  const int64_t B = one.batch_tokens;
  const Way alone{"one rank", 1, 1, false}, data{"whole replicas", ranks, 1, false}, stages{"stages", ranks, ranks, false},
      hybrid{"hybrid", ranks, ranks, true};
  const Best base = *best_of(one, alone, cluster, B, 1e300);
  const double memory = largest_memory(base.result), rate = base.result.tokens_per_second();
  fmt::print("{} ranks, network {}; memory of a rank: what one rank needs for {} tokens, {:.2f} GiB\n", ranks, cluster.network.preset, B,
             memory / (1 << 30));
  fmt::print("equal batches of {} tokens:\n", B);
  show(alone, base, rate);
  for (const Way& way : {data, stages, hybrid}) show(way, best_of(one, way, cluster, B, memory), rate);
  fmt::print("equal batches of {} tokens for {} ranks:\n", ranks * B, ranks);
  for (const Way& way : {data, stages, hybrid}) show(way, best_of(one, way, cluster, ranks * B, memory), rate);
  fmt::print("the fastest batches that fit into memory:\n");
  show(alone, base, rate);
  for (const Way& way : {data, stages, hybrid}) {
    std::optional<Best> best;
    for (const int64_t factor : {1, 2, 4, 6, 8, 12, 16}) {
      const auto found = best_of(one, way, cluster, factor * B, memory);
      if (!found) break;
      if (!best || found->result.tokens_per_second() > best->result.tokens_per_second()) best = found;
    }
    show(way, best, rate);
  }
}

int run(const std::vector<std::string>& words) {
  BenchTrainOptions one;
  Scenario cluster;
  const auto word = [&](size_t i, const std::string& standard) { return i < words.size() ? words[i] : standard; };
  one.model = model_preset(word(0, "gnmt-4"));
  one.model.attention_place = AttentionPlace::top, one.model.readout = Readout::context;
  one.vocabulary = std::stoll(word(1, "32000")), one.batch_tokens = std::stoll(word(2, "1800"));
  one.precision = "f32", one.threads = 1;
  cluster.ranks = std::stoi(word(3, "4")), cluster.network.preset = word(4, "10gbe");
  BenchTrainOptions small = one;
  small.batch_tokens = std::min<int64_t>(one.batch_tokens, 300), small.seconds = 1;
  const Calibration c = calibrate(small);
  ComputeModel& to = cluster.compute;
  to.forward_gflops = c.forward_gflops, to.backward_gflops = c.backward_gflops, to.weights_gb_s = c.weights_gb_s;
  to.update_gb_s = c.update_gb_s, to.memory_gb_s = c.memory_gb_s;
  fmt::print(
      "rates of one thread: forward {:.1f} and backward {:.1f} GFLOP/s, weights {:.1f} GB/s, update {:.1f} GB/s, memory {:.1f} GB/s\n",
      to.forward_gflops, to.backward_gflops, to.weights_gb_s, to.update_gb_s, to.memory_gb_s);
  simulated(one, cluster);
  return 0;
}

}  // namespace
}  // namespace starling

int main(int count, char** words) {
  try {
    return starling::run({words + 1, words + count});
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
