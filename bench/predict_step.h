// Predicts how long an update takes on a card that this machine does not have: it counts each op's operations and bytes by running the
// update's own code without computing, and divides them by the card's rates.
#pragma once

#include <string>
#include <vector>

#include "measure/bench.h"

namespace starling {

struct PredictedOp {
  std::string name;
  double calls = 0, flops = 0, bytes = 0;  // per update
  double floor_seconds = 0;                // at the card's rates
  double seconds = 0;                      // at the fraction of these rates that the op's kernels are expected to reach
};

struct PredictedStep {
  std::string card;         // its name and the rates assumed for it
  double product_rate = 0;  // FLOP/s of large products in bf16
  double seconds = 0, floor_seconds = 0;
  double flops = 0;  // of matrix products, including attention's
  double target_tokens_per_second = 0;
  std::vector<PredictedOp> ops;  // longest first
};

// `card` is h200, h100 or a100; throws ConfigError for anything else.
PredictedStep predict_step(const BenchTrainOptions& options, const std::string& card);

}  // namespace starling
