#include "alignment/hmm.h"

namespace starling {
namespace {

constexpr double kLeastWeight = 1e-6;  // of the largest
constexpr auto kWide = static_cast<size_t>(kWidestJump);

// out[i] = the sum over k of in[k] * weights(i - k), i and k from 1 to n: the near ones one by one, those of the widest jumps by sums.
void convolve(const double* in, double* out, size_t n, const JumpWidths& weights) {
  std::fill_n(out + 1, n, 0.);
  const double* const middle = weights.data() + kWide;
  for (size_t k = 1; k <= n; ++k) {
    const size_t first = k > kWide - 1 ? k - (kWide - 1) : 1, last = std::min(n, k + kWide - 1);
    const double x = in[k], *w = middle + (static_cast<ptrdiff_t>(first) - static_cast<ptrdiff_t>(k));
    double* const to = out + first;
    for (size_t i = 0; i <= last - first; ++i) to[i] += x * w[i];
  }
  double low = 0, high = 0;  // sums of what is at least so far before, after
  for (size_t i = kWide + 1; i <= n; ++i) out[i] += weights.back() * (low += in[i - kWide]);
  for (size_t i = n; i > kWide; --i) out[i - kWide] += weights.front() * (high += in[i]);
}

// sums[width] += the sum over k of from[k] * to[k + width].
void correlate(const double* from, const double* to, size_t n, JumpWidths& sums) {
  double* const middle = sums.data() + kWide;
  for (size_t k = 1; k <= n; ++k) {
    const size_t first = k > kWide - 1 ? k - (kWide - 1) : 1, last = std::min(n, k + kWide - 1);
    const double x = from[k], *near = to + first;
    double* const s = middle + (static_cast<ptrdiff_t>(first) - static_cast<ptrdiff_t>(k));
    for (size_t i = 0; i <= last - first; ++i) s[i] += x * near[i];
  }
  double low = 0, high = 0;
  for (size_t i = kWide + 1; i <= n; ++i) sums.back() += to[i] * (low += from[i - kWide]);
  for (size_t i = n; i > kWide; --i) sums.front() += to[i - kWide] * (high += from[i]);
}

// Calls each(place of a width, how many of the positions 1 to n are so far from k).
template <class Each>
void for_widths(size_t k, size_t n, Each each) {
  const auto from = static_cast<int64_t>(k), end = static_cast<int64_t>(n);
  const int64_t low = std::max(1 - from, 1 - kWidestJump), high = std::min(end - from, kWidestJump - 1);
  if (1 - from < low) each(size_t{0}, static_cast<double>(low - 1 + from));
  for (int64_t width = low; width <= high; ++width) each(jump_place(width), 1.);
  if (high < end - from) each(2 * kWide, static_cast<double>(end - from - high));
}

}  // namespace

void JumpCounts::add(const JumpCounts& other) {
  for (size_t kind = 0; kind < 2; ++kind)
    for (size_t i = 0; i < jumps[kind].size(); ++i) {
      jumps[kind][i] += other.jumps[kind][i];
      chances[kind][i] += other.chances[kind][i];
    }
}

JumpDistribution::JumpDistribution() {
  for (JumpWidths& w : weights) w.fill(1);
}

void JumpDistribution::maximize(const JumpCounts& counts) {
  for (size_t kind = 0; kind < 2; ++kind) {
    JumpWidths& w = weights[kind];
    for (size_t i = 0; i < w.size(); ++i) w[i] = counts.chances[kind][i] > 0 ? counts.jumps[kind][i] / counts.chances[kind][i] : 0;
    const double most = *std::max_element(w.begin(), w.end());
    for (double& x : w) x = most > 0 ? std::max(x / most, kLeastWeight) : 1;
  }
}

HmmLattice::HmmLattice(const JumpDistribution& jumps, double null_probability, size_t S)
    : jumps_(jumps),
      null_(null_probability),
      states_(S + 1),
      inverse_(states_),
      before_(states_),
      beta_(states_),
      next_(states_),
      spread_(states_),
      weighted_(states_),
      occupied_(states_) {
  std::reverse_copy(jumps.weights[0].begin(), jumps.weights[0].end(), mirrored_.begin());
  before_[0] = 1;
  for (size_t k = 0; k < states_; ++k) {
    double sum = 0;
    for_widths(k, S, [&](size_t place, double positions) { sum += positions * jumps.weights[k == 0][place]; });
    inverse_[k] = sum > 0 ? 1 / sum : 0;
  }
}

void HmmLattice::take(std::span<const double> emissions, JumpCounts* counts) {
  const size_t rows = emissions.size() / states_;
  before_.erase(before_.begin(), before_.end() - static_cast<ptrdiff_t>(states_));  // of the word that comes now
  before_.resize((rows + 1) * states_);
  posteriors_.resize(rows * states_);
  scales_.resize(rows);
  for (size_t row = 0; row < rows; ++row) forward(emissions.subspan(row * states_, states_), row);
  std::fill(beta_.begin(), beta_.end(), 1.);
  std::fill(occupied_.begin(), occupied_.end(), 0.);
  for (JumpWidths& w : found_) w.fill(0);
  for (size_t row = rows; row-- > 0;) backward(emissions.subspan(row * states_, states_), row, counts != nullptr);
  if (!counts) return;
  for (size_t kind = 0; kind < 2; ++kind)
    for (size_t i = 0; i < found_[kind].size(); ++i) counts->jumps[kind][i] += found_[kind][i] * jumps_.weights[kind][i];
  for (size_t k = 0; k < states_; ++k) {
    const double share = occupied_[k] * inverse_[k];
    for_widths(k, states_ - 1, [&](size_t place, double positions) { counts->chances[k == 0][place] += share * positions; });
  }
}

void HmmLattice::forward(std::span<const double> emissions, size_t row) {
  const size_t S = states_ - 1;
  const double* const before = before_.data() + row * states_;
  double *const after = before_.data() + (row + 1) * states_, *const linked = posteriors_.data() + row * states_;
  for (size_t k = 0; k < states_; ++k) weighted_[k] = before[k] * inverse_[k];
  convolve(weighted_.data(), linked, S, jumps_.weights[0]);
  const double uniform = JumpDistribution::kUniform / static_cast<double>(std::max<size_t>(S, 1)), null = null_ * emissions[0];
  double sum = null;
  linked[0] = 0;
  for (size_t i = 1; i <= S; ++i) {
    const double jump = linked[i] + weighted_[0] * jumps_.weights[1][jump_place(static_cast<int64_t>(i))];
    linked[i] = emissions[i] * (1 - null_) * (uniform + (1 - JumpDistribution::kUniform) * jump);
    sum += linked[i];
  }
  for (size_t i = 0; i < states_; ++i) {
    linked[i] /= sum;
    after[i] = linked[i] + null / sum * before[i];
  }
  scales_[row] = sum;
}

void HmmLattice::backward(std::span<const double> emissions, size_t row, bool counting) {
  const size_t S = states_ - 1;
  constexpr double kByWidth = 1 - JumpDistribution::kUniform;
  const double* const before = before_.data() + row * states_;
  double* const posteriors = posteriors_.data() + row * states_;
  const double null = null_ * emissions[0] / scales_[row];
  double all = 0, first = 0;
  for (size_t i = 1; i <= S; ++i) {
    const double x = emissions[i] * (1 - null_) * beta_[i] / scales_[row];
    posteriors[i] *= beta_[i];
    next_[i] = x;
    all += x;
    first += x * jumps_.weights[1][jump_place(static_cast<int64_t>(i))];
  }
  convolve(next_.data(), spread_.data(), S, mirrored_);
  spread_[0] = first;
  const double uniform = S > 0 ? JumpDistribution::kUniform * all / static_cast<double>(S) : 0;
  for (size_t k = 0; k < states_; ++k) {
    posteriors[0] += before[k] * null * beta_[k];
    weighted_[k] = before[k] * inverse_[k] * kByWidth;
    occupied_[k] += weighted_[k] * spread_[k];
    beta_[k] = null * beta_[k] + uniform + kByWidth * inverse_[k] * spread_[k];
  }
  if (!counting) return;
  correlate(weighted_.data(), next_.data(), S, found_[0]);
  for (size_t i = 1; i <= S; ++i) found_[1][jump_place(static_cast<int64_t>(i))] += weighted_[0] * next_[i];
}

}  // namespace starling
