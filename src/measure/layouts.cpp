#include "measure/layouts.h"

#include <algorithm>

#include "backend/meta.h"
#include "parallel/stages.h"
#include "settings/checks.h"

namespace starling {
namespace {

struct Way {
  std::string name;
  std::vector<ConfigLine> keys;
  std::function<void(StrategyOptions&)> set;
};

std::vector<Way> ways(const StrategyOptions& own) {
  std::vector<Way> all{
      {"all-reduce", {}, [](StrategyOptions& o) { o = {}; }},
      {"all-reduce, bf16", {{"strategy.wire", "bf16"}}, [](StrategyOptions& o) { o = {}, o.wire = Wire::bf16; }},
      {"all-reduce, sharded optimizer",
       {{"strategy.sharded-optimizer", "true"}},
       [](StrategyOptions& o) { o = {}, o.sharded_optimizer = true; }},
      {"gradient-dropping, 4-bit",
       {{"strategy.name", "gradient-dropping"}, {"strategy.compression.compressor", "4-bit"}},
       [](StrategyOptions& o) {
         o = strategy_preset("gradient-dropping");
         o.compression.compressor = Compressor::four_bit;
         o.compression.keep_warmup = 0;
       }},
      {"sparse-local", {{"strategy.name", "sparse-local"}}, [](StrategyOptions& o) { o = strategy_preset("sparse-local"); }},
      {"bmuf", {{"strategy.name", "bmuf"}}, [](StrategyOptions& o) { o = strategy_preset("bmuf"); }},
  };
  const auto known = [&](const Way& way) { return way.name == own.name; };
  if (family_of(own) != Family::asynchronous && own.name != "all-reduce" && std::none_of(all.begin(), all.end(), known))
    all.push_back({own.name, {{"strategy.name", own.name}}, [own](StrategyOptions& o) { o = own; }});
  return all;
}

constexpr int64_t kHybridPieces = 4;  // pieces of time where the configuration sets none: without them the stages hardly overlap

void add_layouts(const Config& config, int64_t ranks, const ParallelOptions& cut, std::vector<Layout>& all) {
  const bool alone = cut.ranks() == ranks;  // one replica exchanges nothing
  for (const Way& way : ways(config.strategy)) {
    if (alone && way.name != "all-reduce") break;
    Config c = config;
    way.set(c.strategy);
    c.parallel.pipeline = cut.pipeline;
    c.parallel.tensor = cut.tensor;
    c.parallel.hybrid = cut.hybrid;
    if (cut.pipeline != config.parallel.pipeline || cut.hybrid != config.parallel.hybrid) c.parallel.stages.clear();
    if (cut.pipeline == 1) {
      c.parallel.micro_batches = 0;
      c.parallel.time_pieces = 0;
    }
    if (cut.hybrid && c.parallel.time_pieces == 0) c.parallel.time_pieces = kHybridPieces;
    if (family_of(c.strategy) != Family::synchronous) c.train.optimizer.ema = 0;
    Layout layout{alone ? "-" : way.name, {}, layout_run(c), {}, ""};
    const auto key = [&](const char* name, int64_t value, int64_t written) {
      if (value > 1 || value != written) layout.keys.push_back({name, std::to_string(value)});
    };
    key("parallel.pipeline", cut.pipeline, config.parallel.pipeline);
    if (c.parallel.stages != config.parallel.stages) layout.keys.push_back({"parallel.stages", "[]"});
    key("parallel.tensor", cut.tensor, config.parallel.tensor);
    if (cut.hybrid || config.parallel.hybrid) layout.keys.push_back({"parallel.hybrid", cut.hybrid ? "true" : "false"});
    if (cut.hybrid) layout.keys.push_back({"parallel.time-pieces", std::to_string(c.parallel.time_pieces)});
    if (!alone) layout.keys.insert(layout.keys.end(), way.keys.begin(), way.keys.end());
    try {
      require_whole_matrices(c);
      check_r_drop(c);
    } catch (const ConfigError& e) {
      layout.refused = e.what();
    }
    all.push_back(std::move(layout));
  }
}

}  // namespace

std::vector<Layout> layouts_of(const Config& config, int ranks) {
  MetaBackend idle(DType::f32, DType::f32);
  const auto model = declare_model(config.model, {config.vocab.training.size, config.vocab.training.size}, idle);
  std::vector<Layout> all;
  const auto units = static_cast<int64_t>(model->units());
  ParallelOptions cut;
  for (cut.pipeline = 1; cut.pipeline <= std::min<int64_t>(ranks, units); ++cut.pipeline) {
    for (cut.tensor = 1; cut.tensor <= ranks / cut.pipeline; ++cut.tensor)
      if (ranks % cut.ranks() == 0 && can_be_cut(config.model, cut.tensor)) add_layouts(config, ranks, cut, all);
    cut.tensor = 1;
    cut.hybrid = true;
    if (cut.pipeline > 1 && cut.pipeline < units && ranks % cut.pipeline == 0 && !model->output_reads().empty())
      add_layouts(config, ranks, cut, all);
    cut.hybrid = false;
  }
  return all;
}

double largest_memory(const LayoutResult& result) {
  double most = 0;
  for (const RankMemory& m : result.memory) most = std::max(most, m.total());
  return most;
}

void forecast_all(std::vector<Layout>& layouts, const Scenario& scenario, double memory, const std::function<void(size_t, size_t)>& told) {
  for (size_t i = 0; i < layouts.size(); ++i) {
    told(i, layouts.size());
    if (!layouts[i].refused.empty()) continue;
    try {
      layouts[i].result = forecast(layouts[i].run, scenario);
    } catch (const ConfigError& e) {
      layouts[i].refused = e.what();
    }
  }
  const auto rank = [&](const Layout& l) { return !l.refused.empty() ? 2 : largest_memory(l.result) > memory ? 1 : 0; };
  std::stable_sort(layouts.begin(), layouts.end(), [&](const Layout& a, const Layout& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return rank(a) < 2 && a.result.tokens_per_second() > b.result.tokens_per_second();
  });
}

}  // namespace starling
