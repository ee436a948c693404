#include "laboratory/prediction_history.h"

#include <fmt/chrono.h>

#include <ctime>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "base/this_host.h"
#include "base/version.h"
#include "measure/forecast.h"

namespace starling {
namespace {

PastPrediction predicted(const std::string& run, const ClusterArguments& cluster, bool measure_again) {
  const MeasuredRun measured = measured_run(run);
  Config config = load_config(join_path(run, "config.yml"));
  config.train.threads = measured.threads;
  LayoutRun layout = layout_run(config);
  layout.strategy.compression.keep_warmup = 0;  // which a run leaves behind
  // The ranks of one host, unless the command line says otherwise.
  Scenario standard;
  standard.ranks = measured.ranks;
  standard.network.ranks_per_node = measured.ranks;
  const auto say = [](const std::string& line) { std::cout << line << std::endl; };
  Scenario scenario = cluster.load_for_prediction(calibration_model(config), measure_again, say, standard);
  scenario.ranks = measured.ranks;
  const LayoutResult forecasted = forecast(layout, scenario);
  return {fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
          this_host(),
          std::string(kVersion),
          std::filesystem::absolute(run).lexically_normal().string(),
          config.model.preset,
          measured.strategy,
          measured.ranks,
          forecasted.tokens_per_second(),
          measured.tokens_per_second()};
}

}  // namespace

void show_history(const std::vector<std::string>& runs, const ClusterArguments& cluster, bool measure_again) {
  PredictionHistory history(history_path());
  for (const std::string& run : runs) history.add(predicted(run, cluster, measure_again));
  std::cout << history_text(history);
}

}  // namespace starling
