#include "measure/forecast.h"

#include "sim/simulate.h"

namespace starling {

LayoutResult forecast(const LayoutRun& run, Scenario scenario) {
  scenario.timing_only = true;
  LayoutRun timed = run;
  timed.train.threads = 1;  // nothing is computed
  LayoutResult result;
  simulate(scenario, [&](World& world) {
    const LayoutResult mine = time_layout(timed, world);
    if (world.comm->rank() == 0) result = mine;
  });
  return result;
}

}  // namespace starling
