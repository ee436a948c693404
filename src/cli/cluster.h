// A simulated cluster on the command line: a file with the section `cluster`, overridden by --workers, --network and --cluster.KEY.
// Computing rates that are not given are measured on this machine once and saved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "measure/bench_distributed.h"
#include "settings/config.h"
#include "sim/simulate.h"

namespace starling {

class ClusterArguments {
 public:
  static std::shared_ptr<ClusterArguments> add_to(CLI::App& verb);
  // Whether any cluster option is given.
  bool given() const;
  const std::string& file() const { return file_; }
  // Returns the scenario. Computing rates come from the file or the command line, else from `frozen` if that file exists; else they are
  // measured with `model` and returned in `measured` for keep_rates. `say` gets a line about their origin.
  Scenario load(const BenchTrainOptions& model, const std::string& frozen, const std::function<void(const std::string&)>& say,
                std::optional<ComputeModel>& measured) const;

 private:
  std::string file_;
  std::vector<std::pair<std::string, CLI::Option*>> keys_;
};

// Returns what to measure for a training configuration.
BenchTrainOptions calibration_model(const Config& config);

// Returns computing rates from `frozen` if that file exists, else measured with `model`. `say` gets a line about it.
ComputeModel measured_rates(const BenchTrainOptions& model, const std::string& frozen, const std::function<void(const std::string&)>& say);

// Writes rates to `frozen` unless that file exists; "" = nowhere. Call it once nothing can be refused any more.
void keep_rates(const ComputeModel& rates, const std::string& frozen);

// Writes a measured run as a cluster for simulation: computing rates, latency and bandwidth.
void write_cluster(const std::string& path, const BenchDistributedResult& measured);

// Returns a summary for people: the time and, for each rank, computing, waiting and bytes.
std::string simulation_text(const SimulationResult& result, const Scenario& scenario);

}  // namespace starling
