// Lists the ways to arrange a number of ranks for one model, with a forecast of each on a simulated cluster, ordered by speed: the table of
// `starling plan`.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "measure/forecast.h"

namespace starling {

using ConfigLine = std::pair<std::string, std::string>;  // "parallel.pipeline", "2"

struct Layout {
  std::string strategy;          // for people
  std::vector<ConfigLine> keys;  // configuration keys that select it; empty: the defaults
  LayoutRun run;
  LayoutResult result;
  std::string refused;  // why it is impossible; `result` is then empty
};

// Returns all combinations of stages and shards that divide the ranks, also with the output on every stage where possible, each with the
// synchronous strategies of docs/explanation/strategies.md and with the configuration's own, in the order in which to forecast them.
std::vector<Layout> layouts_of(const Config& config, int ranks);

// Fills in the results and sorts: layouts that fit into `memory` bytes per rank come first, and among them the fastest. Calls told(done,
// total) before each forecast.
void forecast_all(std::vector<Layout>& layouts, const Scenario& scenario, double memory, const std::function<void(size_t, size_t)>& told);

// Returns the bytes of the rank that needs most.
double largest_memory(const LayoutResult& result);

}  // namespace starling
