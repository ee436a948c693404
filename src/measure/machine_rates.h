// A machine's rates for simulations: measured once, kept in a file, read again.
#pragma once

#include <functional>
#include <string>

#include "measure/bench_distributed.h"
#include "measure/calibration.h"
#include "settings/config.h"
#include "sim/scenario.h"

namespace starling {

// The section `cluster` of a file.
std::vector<ConfigSection> cluster_sections(Scenario& scenario);

void set_rates(Scenario& scenario, const Calibration& rates);

// Returns what to measure for a training configuration.
BenchTrainOptions calibration_model(const Config& config);

// Returns the ranks of a node, which compute at the same time.
int ranks_of_a_node(const Scenario& scenario);

// Returns the file in which predictions keep the rates of this host for such a model on so many ranks; "" if there is no home.
std::string rates_path(const BenchTrainOptions& model, int ranks);

// Returns rates from `frozen` if that file exists, else measured with `model` on so many ranks at once, or on as many as there are cores
// for. `say` gets lines about it.
Calibration measured_rates(const BenchTrainOptions& model, int ranks, const std::string& frozen, const Say& say);

// Writes rates to `frozen` unless that file exists; "" = nowhere. Call it once nothing can be refused any more.
void keep_rates(const Calibration& rates, const std::string& frozen);

// Writes a measured run as a cluster for simulation: computing rates, latency and bandwidth.
void write_cluster(const std::string& path, const BenchDistributedResult& measured);

}  // namespace starling
