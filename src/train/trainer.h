// `starling train`: from a configuration to a trained model in a run directory. The same call continues a run that was stopped,
// and a continued run has bit for bit the parameters of an uninterrupted one (at an equal number of threads).
#pragma once

#include "train/config.h"

namespace starling {

// Returns the exit status: 0 when training is complete, 128 + signal after SIGINT or SIGTERM (everything is saved then).
int run_training(const Config& config);

}  // namespace starling
