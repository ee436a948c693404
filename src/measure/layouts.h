// The ways to arrange so many ranks for one model, forecast on a simulated cluster and ordered by speed: what `starling plan` shows.
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
  std::vector<ConfigLine> keys;  // what the configuration needs for it; empty: the defaults
  LayoutRun run;
  LayoutResult result;
  std::string refused;  // why it cannot be; then there is no result
};

// Every number of stages and of shards that divides the ranks, with the output on every stage too where that is possible, with the
// strategies of docs/explanation/strategies.md whose ranks make updates together, and with the configuration's own. In the order in which
// they are to be forecast.
std::vector<Layout> layouts_of(const Config& config, int ranks);

// Fills in the results; those that fit `memory` bytes a rank come first, the fastest of them first. told(done, of) before each.
void forecast_all(std::vector<Layout>& layouts, const Scenario& scenario, double memory, const std::function<void(size_t, size_t)>& told);

// Of the rank that needs most.
double largest_memory(const LayoutResult& result);

}  // namespace starling
