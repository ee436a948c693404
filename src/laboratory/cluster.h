// A simulated cluster on the command line: a file with the section `cluster`, overridden by --workers, --network and --cluster.KEY.
// Computing rates that are not given are measured on this machine once and saved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "laboratory/verbs.h"
#include "measure/machine_rates.h"
#include "settings/config.h"
#include "sim/simulate.h"

namespace starling {

// The option --measure-again of verbs that predict.
void add_measure_again(CLI::App& verb, bool& again);

class ClusterArguments {
 public:
  static std::shared_ptr<ClusterArguments> add_to(CLI::App& verb);
  // Whether any cluster option is given.
  bool given() const;
  const std::string& file() const { return file_; }
  // Returns the scenario. Computing rates come from the file or the command line, else from `frozen` if that file exists; else they are
  // measured with `model` and returned in `measured` for keep_rates, and the scenario has the measured jitter unless one is given. `say`
  // gets a line about their origin.
  Scenario load(const BenchTrainOptions& model, const std::string& frozen, const std::function<void(const std::string&)>& say,
                std::optional<Calibration>& measured) const {
    return load(model, [&](const Scenario&) { return frozen; }, say, measured, {});
  }
  // The same for predictions: measured rates are kept for this host, this version of the program and such a model, and measured `again` if
  // asked for. Keys that are not given are those of `standard`.
  Scenario load_for_prediction(const BenchTrainOptions& model, bool again, const std::function<void(const std::string&)>& say,
                               const Scenario& standard = {}) const;

 private:
  Scenario load(const BenchTrainOptions& model, const std::function<std::string(const Scenario&)>& frozen,
                const std::function<void(const std::string&)>& say, std::optional<Calibration>& measured, const Scenario& standard) const;
  std::string file_;
  std::vector<std::pair<std::string, CLI::Option*>> keys_;
};

// Returns a summary for people: the time and, for each rank, computing, waiting and bytes.
std::string simulation_text(const SimulationResult& result, const Scenario& scenario);

}  // namespace starling
