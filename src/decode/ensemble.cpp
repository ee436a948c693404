#include "decode/ensemble.h"

#include <cmath>

namespace starling {
namespace {

// Returns logits_of(), in `room`, which grows if it must.
Tensor logits_in(Backend& backend, const OutputProduct& output, Tensor& room) {
  const int64_t rows = output.x.rows(), V = output.w->out;
  if (!room || room.count() < rows * V) room = Tensor({rows * V}, backend.parameter(), backend.memory());
  const Tensor logits = room.slice(0, {rows, V});
  backend.linear(output.x, *output.w, output.b, logits, Activation::none, Write::overwrite);
  if (output.bound > 0) backend.clamp(logits, output.bound, logits, {});
  return logits.rows(0, output.rows);
}

}  // namespace

// The weighted mean of log-probabilities, renormalised, is the softmax of that of the logits: in each row, a model's logits are above its
// log-probabilities by one number.
void EnsembleScores::top_k(Backend& backend, const OutputProduct& first, std::span<const OutputProduct> others,
                           std::span<const double> weights, int64_t k, std::vector<float>& values, std::vector<int32_t>& tokens) {
  const auto share = [&](size_t model) { return weights.empty() ? 1 / static_cast<double>(others.size() + 1) : weights[model]; };
  const Tensor mean = logits_in(backend, first, mean_);
  backend.flat().scale(mean, share(0), mean, Write::overwrite);
  for (size_t m = 0; m < others.size(); ++m) {
    const OutputProduct& other = others[m];
    CHECK(other.rows == first.rows && other.w->out == first.w->out, "logits [{}, {}] and [{}, {}]", first.rows, first.w->out, other.rows,
          other.w->out);
    backend.flat().scale(logits_in(backend, other, logits_), share(m + 1), mean, Write::accumulate);
  }
  const int64_t R = first.rows;
  const Tensor best({R, k}, mean.dtype(), backend.memory()), columns({R, k}, DType::i32, backend.memory()),
      denominator({R, 2}, DType::f64, backend.memory());
  backend.top_logits(mean, k, best, columns, denominator);
  const std::vector<double> z = best.to_doubles(), sums = denominator.to_doubles();
  tokens.resize(static_cast<size_t>(R * k));
  values.resize(tokens.size());
  columns.read<int32_t>(tokens);
  for (int64_t r = 0; r < R; ++r) {
    const double log_sum = sums[2 * r] + std::log(sums[2 * r + 1]);
    for (int64_t i = r * k; i < (r + 1) * k; ++i) values[i] = static_cast<float>(z[i] - log_sum);
  }
}

}  // namespace starling
