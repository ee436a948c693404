#include "experiments/throughput.h"

#include <algorithm>

#include "experiments/times.h"

namespace starling {

TrainingWatch Throughput::watch(World& world) {
  Rank& rank = ranks_[static_cast<size_t>(world.comm->rank())];
  TrainingWatch watch;
  watch.resumed = [&](bool) { rank.since_ns = world.clock->now_ns(); };
  watch.paused = [&](bool) { rank.ns += world.clock->now_ns() - rank.since_ns; };
  watch.updated = [&](int64_t, int64_t tokens, int64_t) { rank.tokens += tokens; };
  return watch;
}

double Throughput::tokens_per_second() const {
  double sum = 0;
  for (const Rank& rank : ranks_)
    if (rank.ns > 0) sum += 1e9 * static_cast<double>(rank.tokens) / static_cast<double>(rank.ns);
  return sum;
}

int Throughput::workers() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.tokens > 0; }));
}

double one_worker_tokens_per_second(const Config& config, Scenario scenario) {
  constexpr int64_t kSteps = 50;  // enough for the mean length of a batch to settle
  Config alone = config;
  alone.strategy = {};
  if (alone.train.micro_batch_tokens == 0) alone.train.micro_batch_tokens = alone.train.batch_tokens;
  scenario.jitter = 0;
  scenario.network.ranks_per_node = 1;
  scenario.stragglers.clear();
  scenario.link_faults.clear();
  scenario.crashes.clear();
  const auto files = real_file_system();
  const Vocabularies vocabularies = describe_model(*files, config.train.output).vocabularies;
  const TokenStore store = TokenStore::open(*files, join_path(config.train.output, "data"));
  const int64_t steps = std::min(kSteps, step_limit(config.train));
  const RaceTimes::At at = replay_times(alone, scenario, store, vocabularies, 1, steps).at(steps);
  return 1e9 * static_cast<double>(at.tokens) / static_cast<double>(at.ns);
}

}  // namespace starling
