#include "measure/forecast.h"

#include "sim/simulate.h"

namespace starling {

void scale_buckets(StrategyOptions& strategy, const Scenario& scenario) {
  if (strategy.bucket_mib == 0) strategy.bucket_mib = scenario.network.gpu == "none" ? kHostBucketMib : kCardBucketMib;
}

LayoutResult forecast(const LayoutRun& run, Scenario scenario) {
  scenario.timing_only = true;
  LayoutRun timed = run;
  timed.train.threads = 1;  // nothing is computed
  scale_buckets(timed.strategy, scenario);
  LayoutResult result;
  simulate(scenario, [&](World& world) {
    const LayoutResult mine = time_layout(timed, world);
    if (world.comm->rank() == 0) result = mine;
  });
  return result;
}

}  // namespace starling
