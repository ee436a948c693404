// The gradient noise scale (McCandlish et al. 2018): the batch, in target tokens, at which the noise of the gradient is as large as its
// signal. Measured by comparing the gradient of a whole batch with those of its parts, which the workers have anyway.
#pragma once

#include <cstdint>

#include "storage/state.h"

namespace starling {

// Parts of a batch: s_i, the sum of the gradients of b_i target tokens.
struct GradientParts {
  double squares = 0;         // sum of |s_i|^2
  double tokens = 0;          // sum of b_i
  double tokens_squared = 0;  // sum of b_i^2
};

// The estimates of one update. They are unbiased, so either may be negative.
struct NoiseSample {
  double variance = 0;  // trace of the covariance of one token's gradient
  double signal = 0;    // |G|^2, of the mean gradient
  bool known = false;
};

/// The sample of a batch of `tokens` target tokens whose summed gradient has this sum of squares. Unknown if there are no parts, or if the
/// only part is the whole batch.
NoiseSample noise_sample(const GradientParts& parts, double squares, double tokens);

// The noise scale over the updates of a run. Numerator and denominator are averaged separately, since their ratio in one update says
// nothing.
class NoiseScale {
 public:
  void add(const NoiseSample& sample);
  /// variance / signal in target tokens, over about the last hundred updates, or the last quarter of them while there are fewer than 400;
  /// NaN before the fiftieth, or if the signal is lost in the noise.
  double tokens() const;

  void save(State& state) const;
  // Restores what was saved, if the state has it.
  void restore(const State& state);

 private:
  double variance_ = 0, signal_ = 0;  // moving averages
  int64_t count_ = 0;
};

}  // namespace starling
