// `starling train`: from a configuration to a trained model in a run directory. The same call continues a run that was stopped,
// and a continued run has bit for bit the parameters of an uninterrupted one (at an equal number of threads).
#pragma once

#include "comm/world.h"
#include "train/config.h"

namespace starling {

// Returns the exit status: 0 when training is complete, 128 + signal after SIGINT or SIGTERM (everything is saved then). Every rank of the
// world calls it with the same configuration; rank 0 writes the run directory.
int run_training(const Config& config, World& world);
// One rank.
int run_training(const Config& config);

}  // namespace starling
