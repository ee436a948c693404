// How long an update would take on a card that this machine does not have: the operations and bytes of each op, counted by running the
// update's own code without computing, divided by the card's rates. Predicted, not measured.
#pragma once

#include <string>
#include <vector>

#include "measure/bench.h"

namespace starling {

struct PredictedOp {
  std::string name;
  double calls = 0, flops = 0, bytes = 0;  // of an update
  double floor_seconds = 0;                // at the card's rates
  double seconds = 0;                      // at the share of these rates that the op's kernels are expected to reach
};

struct PredictedStep {
  std::string card;         // its name and the rates that are taken for it
  double product_rate = 0;  // FLOP/s of large products in bf16
  double seconds = 0, floor_seconds = 0;
  double flops = 0;  // of matrix products, attention's among them
  double target_tokens_per_second = 0;
  std::vector<PredictedOp> ops;  // the longest first
};

// card: h200, h100 or a100; ConfigError for another word.
PredictedStep predict_step(const BenchTrainOptions& options, const std::string& card);

}  // namespace starling
