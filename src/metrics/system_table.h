// Formats several systems side by side, as `starling evaluate` prints them: sacreBLEU's table with test results, or its JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metrics/significance.h"

namespace starling {

struct ComparedMetric {
  std::string name, signature;      // "BLEU", "nrefs:1|bs:1000|seed:12345|..."
  std::vector<TestedScore> scores;  // by system
};

struct ComparedSystems {
  std::vector<std::string> names;  // the first is the baseline
  std::vector<ComparedMetric> metrics;
  std::string about;  // lines on what was done and how to read it; empty without a test
};

/// Returns a table with one row per system, a description of the test and the metrics' signatures. Scores have `width` decimals.
std::string system_table(const ComparedSystems& compared, int width);

/// Returns [{"system": "Baseline: a", "BLEU": {"score", "p_value", "mean", "ci", "signature"}, ...}, ...]; values that were not computed
/// are null.
nlohmann::ordered_json system_json(const ComparedSystems& compared);

}  // namespace starling
