#include "strategies/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace starling {
namespace {

constexpr int64_t kFewest = 50;
// Update n has a weight of at least kForgets / (n + kForgets - 1) in its average, so weights grow as n to the power of kForgets - 1: the
// gradients of the first updates, many times as large as later ones, are forgotten within a few times as many updates.
constexpr double kForgets = 4, kLeast = 0.01;

}  // namespace

// The expectation of |s_i|^2 is b_i V + b_i^2 S with V the variance and S the signal, and that of the whole likewise: two equations.
NoiseSample noise_sample(const GradientParts& parts, double squares, double tokens) {
  const double determinant = parts.tokens * tokens * tokens - parts.tokens_squared * tokens;
  if (!(determinant > 1e-9 * parts.tokens * tokens * tokens) || !(squares > 0) || !std::isfinite(parts.squares)) return {};
  return {(parts.squares * tokens * tokens - squares * parts.tokens_squared) / determinant,
          (squares * parts.tokens - parts.squares * tokens) / determinant, true};
}

void NoiseScale::add(const NoiseSample& sample) {
  if (!sample.known) return;
  ++count_;
  const double share = std::max(kLeast, kForgets / (static_cast<double>(count_) + kForgets - 1));
  variance_ += share * (sample.variance - variance_);
  signal_ += share * (sample.signal - signal_);
}

void NoiseScale::save(State& state) const {
  state.put("noise", std::vector<double>{variance_, signal_});
  state.put("noise-updates", count_);
}

void NoiseScale::restore(const State& state) {
  if (!state.has("noise-updates")) return;
  const std::vector<double> sums = state.reals("noise");
  if (sums.size() != 2) return;
  variance_ = sums[0];
  signal_ = sums[1];
  count_ = state.integer("noise-updates");
}

double NoiseScale::tokens() const {
  if (count_ < kFewest || !(signal_ > 0) || !(variance_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  return variance_ / signal_;
}

}  // namespace starling
