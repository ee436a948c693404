// Named strategies: each name stands for a family and values of its options, which a configuration may then change one by one.
#include <algorithm>

#include "base/error.h"
#include "strategies/options.h"

namespace starling {
namespace {

struct Preset {
  const char* name;
  Family family;
  void (*set)(StrategyOptions&);
};

// Each worker has a batch of its own size, as alone: local updates see the batch that the learning rate was chosen for.
void local_batches(StrategyOptions& o) { o.batch = BatchScope::per_worker; }

const Preset kPresets[] = {
    {"all-reduce", Family::synchronous, [](StrategyOptions&) {}},
    {"parameter-server", Family::synchronous, [](StrategyOptions&) {}},
    {"model-average", Family::periodic, [](StrategyOptions& o) { local_batches(o); }},
    // Chen and Huo 2016, true Nesterov; fairseq's interval and number of synchronous updates.
    {"bmuf", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.outer_momentum = -1;
       o.synchronous_steps = 500;
     }},
    // Douillard et al. 2023, with 100 local updates in place of 500: a training run of translation is shorter.
    {"diloco", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.interval = 100, o.periodic.outer_rate = 0.7, o.periodic.outer_momentum = 0.9,
       o.periodic.merge_weights = MergeWeights::equal;
     }},
    // Douillard et al. 2025: displacements in 4 bits; the correction of late merges in place of their mixture.
    {"streaming", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.interval = 100, o.periodic.outer_rate = 0.4, o.periodic.outer_momentum = 0.9,
       o.periodic.merge_weights = MergeWeights::equal;
       o.periodic.fragments = 4;
       o.periodic.delay = 5;
       o.compression.compressor = Compressor::four_bit;
     }},
    // Sarfi et al. 2025: 64 of 4096 elements in 2 bits, and what was not sent fades in place of an outer momentum.
    {"sparse-loco", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.interval = 30;
       o.periodic.merge_weights = MergeWeights::equal;
       o.compression.compressor = Compressor::top_k, o.compression.keep = 64.0 / 4096, o.compression.values = SentValues::two_bit,
       o.compression.residual_decay = 0.95;
     }},
    // Dean et al. 2012. Parameters an update ahead would be twice as old.
    {"downpour", Family::asynchronous, [](StrategyOptions& o) { local_batches(o), o.overlap = false; }},
    // Wu et al. 2016; 12 workers.
    {"gnmt-downpour", Family::asynchronous,
     [](StrategyOptions& o) {
       local_batches(o);
       o.overlap = false;
       o.asynchronous.push_clip = 5;
     }},
    // Aji and Heafield 2017; the rate warms up over as many updates as in their later work.
    {"gradient-dropping", Family::sparse,
     [](StrategyOptions& o) { o.compression.compressor = Compressor::top_k, o.compression.keep_warmup = 1000; }},
    // Aji, Heafield and Bogoychev 2019, with averagings every 100 updates in place of 500.
    {"sparse-local", Family::sparse,
     [](StrategyOptions& o) {
       o.compression.compressor = Compressor::top_k;
       o.synchronous_steps = 500;
       o.sparse.local_gradients = LocalPart::partial;
       o.sparse.average_interval = 100;
     }},
    // Xie et al. 2020: what is not sent is applied here at once, and averaged with the parameters.
    {"cser", Family::sparse,
     [](StrategyOptions& o) {
       o.compression.compressor = Compressor::top_k;
       o.compression.residual_decay = 0;
       o.synchronous_steps = 500;
       o.sparse.local_gradients = LocalPart::error;
       o.sparse.local_scale = -1;
       o.sparse.average_interval = 100;
     }},
};

}  // namespace

std::vector<std::string> strategy_names() {
  return strategy_names({Family::synchronous, Family::periodic, Family::asynchronous, Family::sparse});
}

std::vector<std::string> strategy_names(std::initializer_list<Family> families) {
  std::vector<std::string> names;
  for (const Preset& p : kPresets)
    if (std::find(families.begin(), families.end(), p.family) != families.end()) names.emplace_back(p.name);
  return names;
}

StrategyOptions strategy_preset(const std::string& name) {
  for (const Preset& p : kPresets)
    if (p.name == name) {
      StrategyOptions o;
      o.name = name;
      p.set(o);
      return o;
    }
  throw ConfigError(fmt::format("strategy.name: there is no strategy '{}'; choose {}{}", name, fmt::join(strategy_names(), ", "),
                                did_you_mean(name, strategy_names())));
}

Family family_of(const StrategyOptions& options) {
  for (const Preset& p : kPresets)
    if (p.name == options.name) return p.family;
  throw ConfigError(fmt::format("strategy.name: there is no strategy '{}'", options.name));
}

}  // namespace starling
