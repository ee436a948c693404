#include "decode/adjusted_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace starling {
namespace {

// Turns logits into log-probabilities.
void normalise(std::vector<double>& z) {
  const double largest = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double v : z) sum += std::exp(v - largest);
  for (double& v : z) v -= largest + std::log(sum);
}

void adjust(const RowAdjustment& a, std::vector<double>& z) {
  for (const int32_t token : a.repeated) {
    double& v = z[static_cast<size_t>(token)];
    v = v < 0 ? v * a.repetition_penalty : v / a.repetition_penalty;
  }
  normalise(z);
  if (a.favoured < 0) return;
  double& favoured = z[static_cast<size_t>(a.favoured)];
  const double p = (1 - a.bias) * std::exp(favoured) + a.bias;
  for (double& v : z) v += std::log1p(-a.bias);
  favoured = std::log(p);
}

}  // namespace

void adjust_scores(Backend& backend, const OutputProduct& output, std::span<const RowAdjustment> adjustments, int64_t k,
                   std::vector<float>& values, std::vector<int32_t>& tokens) {
  const Tensor logits = logits_of(backend, output);
  std::vector<int32_t> order(static_cast<size_t>(logits.columns()));
  for (const RowAdjustment& a : adjustments) {
    std::vector<double> z = logits.rows(a.row, a.row + 1).to_doubles();
    if (std::any_of(z.begin(), z.end(), [](double v) { return std::isnan(v); })) continue;  // the search refuses such rows
    adjust(a, z);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t x, int32_t y) {
      const double zx = z[static_cast<size_t>(x)], zy = z[static_cast<size_t>(y)];
      return zx != zy ? zx > zy : x < y;
    });
    for (int64_t i = 0; i < k; ++i) {
      values[static_cast<size_t>(a.row * k + i)] = static_cast<float>(z[static_cast<size_t>(order[static_cast<size_t>(i)])]);
      tokens[static_cast<size_t>(a.row * k + i)] = order[static_cast<size_t>(i)];
    }
  }
}

}  // namespace starling
