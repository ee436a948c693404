#include "tests/faults/layouts.h"

#include "strategies/options.h"

namespace starling {
namespace {

Layout strategy(const std::string& name, int ranks, Layout::Kind kind, const std::function<void(Config&)>& set) {
  return {name, ranks, kind, [=](Config& c) {
            c.strategy = strategy_preset(name);
            c.strategy.batch = BatchScope::global;
            set(c);
          }};
}

void compress_much(Config& c) {
  c.strategy.compression.dense_below = 64, c.strategy.compression.keep = 0.05, c.strategy.compression.keep_warmup = 0;
  c.train.optimizer.ema = 0;
}

}  // namespace

const std::vector<Layout>& layouts() {
  using K = Layout::Kind;
  static const std::vector<Layout> all{
      {"one worker", 1, K::synchronous, [](Config&) {}},
      {"ring", 2, K::synchronous, [](Config& c) { c.strategy.algorithm = Algorithm::ring; }},
      {"tree of four", 4, K::synchronous, [](Config& c) { c.strategy.algorithm = Algorithm::tree; }},
      {"blocking halving-doubling", 4, K::synchronous,
       [](Config& c) { c.strategy.algorithm = Algorithm::halving_doubling, c.strategy.overlap = false; }},
      {"sharded Adam", 3, K::synchronous, [](Config& c) { c.strategy.sharded_optimizer = true; }},
      {"sharded Muon", 2, K::synchronous,
       [](Config& c) { c.strategy.sharded_optimizer = true, c.train.optimizer.optimizer = OptimizerKind::muon; }},
      {"servers everywhere", 3, K::synchronous, [](Config& c) { c.strategy.name = "parameter-server"; }},
      {"two workers, one server", 3, K::synchronous, [](Config& c) { c.strategy.name = "parameter-server", c.strategy.servers = 1; }},
      {"two stages", 2, K::synchronous, [](Config& c) { c.parallel.pipeline = 2; }, 2},
      {"two shards", 2, K::synchronous, [](Config& c) { c.parallel.tensor = 2; }, 2},
      {"two replicas of two stages", 4, K::synchronous, [](Config& c) { c.parallel.pipeline = 2; }, 2},
      {"batches that grow", 2, K::synchronous,
       [](Config& c) { c.train.batch_tokens = 60, c.train.batch_doubles_at = {0.4}, c.train.max_steps = 0, c.train.max_tokens = 900; }},
      {"gnmt", 2, K::synchronous,
       [](Config& c) {
         const auto width = c.model.width;
         c.model = parse_config("model:\n  preset: gnmt-small\n", "test").model;
         c.model.width = width;
       }},
      strategy("sparse-local", 3, K::of_its_own, [](Config& c) { compress_much(c), c.strategy.sparse.average_interval = 5; }),
      strategy("gradient-dropping", 2, K::of_its_own, compress_much),
      strategy("model-average", 3, K::of_its_own, [](Config& c) { c.strategy.periodic.interval = 4; }),
      strategy("bmuf", 2, K::of_its_own, [](Config& c) { c.strategy.periodic.interval = 3, c.strategy.synchronous_steps = 2; }),
      strategy("streaming", 2, K::of_its_own, [](Config& c) { c.strategy.periodic.interval = 4, c.strategy.periodic.delay = 2; }),
      strategy("downpour", 3, K::by_time, [](Config&) {}),
  };
  return all;
}

}  // namespace starling
