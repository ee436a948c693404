// Named strategies: each name stands for a family and values of its options, which a configuration may then change one by one.
#include "base/config.h"
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
void local_batches(StrategyOptions& o) { o.batch = "per-worker"; }

const Preset kPresets[] = {
    {"all-reduce", Family::synchronous, [](StrategyOptions&) {}},
    {"parameter-server", Family::synchronous, [](StrategyOptions&) {}},
    {"model-average", Family::periodic, [](StrategyOptions& o) { local_batches(o); }},
    // Chen and Huo 2016, true Nesterov; fairseq's interval and number of synchronous updates.
    {"bmuf", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.outer_momentum = -1, o.periodic.synchronous_steps = 500;
     }},
    // Douillard et al. 2023, with 100 local updates in place of 500: a training run of translation is shorter.
    {"diloco", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.interval = 100, o.periodic.outer_rate = 0.7, o.periodic.outer_momentum = 0.9, o.periodic.merge_weights = "equal";
     }},
    // Douillard et al. 2025; the correction of late merges in place of their mixture.
    {"streaming", Family::periodic,
     [](StrategyOptions& o) {
       local_batches(o);
       o.periodic.interval = 100, o.periodic.outer_rate = 0.4, o.periodic.outer_momentum = 0.9, o.periodic.merge_weights = "equal";
       o.periodic.fragments = 4, o.periodic.delay = 5;
     }},
    // Dean et al. 2012. Parameters an update ahead would be twice as old.
    {"downpour", Family::asynchronous, [](StrategyOptions& o) { local_batches(o), o.overlap = false; }},
    // Wu et al. 2016; 12 workers.
    {"gnmt-downpour", Family::asynchronous,
     [](StrategyOptions& o) {
       local_batches(o), o.overlap = false;
       o.asynchronous.push_clip = 5;
     }},
};

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Preset& p : kPresets) names.emplace_back(p.name);
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

void check_strategy(const StrategyOptions& o) {
  const PeriodicOptions& p = o.periodic;
  if (family_of(o) == Family::synchronous) return;
  if (o.sharded_optimizer)
    throw ConfigError(fmt::format("strategy.sharded-optimizer belongs to all-reduce, not to {}; set it to false", o.name));
  if (family_of(o) != Family::periodic) return;
  if (p.delay >= p.interval)
    throw ConfigError(fmt::format("strategy.delay {} must be less than strategy.interval {}: a fragment lands before it is sent again",
                                  p.delay, p.interval));
  if (p.fragments > p.interval)
    throw ConfigError(
        fmt::format("strategy.fragments {} are more than strategy.interval {} has updates; lower them", p.fragments, p.interval));
  if (p.inner_state == "reset" && (p.fragments > 1 || p.delay > 0))
    throw ConfigError("strategy.inner-state reset needs one fragment and no delay; choose keep or average");
}

}  // namespace starling
