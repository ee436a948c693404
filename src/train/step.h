// One update of one replica: gradients over micro-batches, the checks that come before anything is changed, clipping, the optimizer,
// the moving average. The trainer and the benchmark share it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/model.h"
#include "optim/optimizer.h"

namespace starling {

struct StepOptions {
  OptimizerOptions optimizer;
  double label_smoothing = 0.1;
  uint64_t seed = 1;           // of dropout
  int64_t max_steps = 100000;  // for the schedule
};

struct StepResult {
  LossSums sums;
  double gradient_norm = 0;  // of the mean gradient per token, before clipping
  double learning_rate = 0;
  int64_t source_tokens = 0, sentences = 0;
};

class Replica {
 public:
  Replica(Model& model, const StepOptions& options);

  // One update from the micro-batches of one global batch; the gradient is the sum over all of them divided once by their target
  // tokens. Throws Error naming the batch, before anything has changed, if the loss or a gradient is not finite.
  StepResult step(std::span<const Batch> micro_batches);

  Model& model() { return model_; }
  Optimizer& optimizer() { return optimizer_; }
  // Updates done.
  int64_t steps() const { return optimizer_.updates(); }
  // The moving average of the parameters (flat); an empty tensor when train.ema is 0.
  const Tensor& average() const { return average_; }
  Arena& arena() { return arena_; }

 private:
  Model& model_;
  StepOptions options_;
  Optimizer optimizer_;
  Tensor average_;
  Arena arena_;
};

// Exchanges the parameters with another flat buffer for the lifetime of this object: validation with the moving average.
class SwappedParameters {
 public:
  SwappedParameters(ParameterStore& store, const Tensor& other);
  ~SwappedParameters();
  SwappedParameters(const SwappedParameters&) = delete;

 private:
  void swap();
  ParameterStore& store_;
  Tensor other_;
};

}  // namespace starling
