// The gradient noise scale (McCandlish et al. 2018): the batch, in target tokens, at which the gradient's noise is as large as what it
// says. Measured by comparing the gradient of a whole batch with those of its parts, which the workers have anyway.
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

// Of one update; unbiased, so that either may be negative.
struct NoiseSample {
  double variance = 0;  // trace of the covariance of one token's gradient
  double signal = 0;    // |G|^2, of the mean gradient
  bool known = false;
};

/// From a batch of `tokens` target tokens whose gradient's sum has `squares`. Unknown if the parts are none, or the whole batch alone.
NoiseSample noise_sample(const GradientParts& parts, double squares, double tokens);

// Over the updates of a run: numerator and denominator are averaged apart, since their ratio of one update says nothing.
class NoiseScale {
 public:
  void add(const NoiseSample& sample);
  /// variance / signal in target tokens, of about the last hundred updates, or the last quarter of them while they are fewer than 400; NaN
  /// before there are fifty, or where the signal is lost in noise.
  double tokens() const;

  void save(State& state) const;
  // As it was, if the state has it.
  void restore(const State& state);

 private:
  double variance_ = 0, signal_ = 0;  // moving averages
  int64_t count_ = 0;
};

}  // namespace starling
