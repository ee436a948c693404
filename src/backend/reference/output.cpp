// What is done with logits: losses with their gradients, the best tokens, samples.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/reference/reference_backend.h"

namespace starling {
namespace {

// The indices of the V numbers, the k largest in front, ties by index.
std::vector<int32_t> best_first(const double* z, int64_t V, int64_t k) {
  std::vector<int32_t> order(V);
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](int32_t a, int32_t b) { return z[a] != z[b] ? z[a] > z[b] : a < b; });
  return order;
}

// The logarithms of a row's probabilities.
std::vector<double> log_softmax(const double* raw, int64_t V, double bound) {
  std::vector<double> log_p(raw, raw + V);
  for (double& v : log_p) v = bound > 0 ? std::clamp(v, -bound, bound) : v;
  const double top = *std::max_element(log_p.begin(), log_p.end());
  const double sum = std::accumulate(log_p.begin(), log_p.end(), 0.0, [&](double s, double v) { return s + std::exp(v - top); });
  for (double& v : log_p) v -= top + std::log(sum);
  return log_p;
}

// What R-Drop adds to rows n and n + 1. With D = log p - log q the gradient of KL(p || q) + KL(q || p) by the logits of p is
// p (D - KL(p || q)) + p - q.
void add_consistency(const Tensor& logits, const LossRows& rows, int64_t n, const Tensor& row_loss, const Tensor& dlogits) {
  const int64_t V = logits.columns();
  const double* const raw[2] = {logits.data<double>() + n * V, logits.data<double>() + (n + 1) * V};
  const std::vector<double> log_p[2] = {log_softmax(raw[0], V, rows.logit_bound), log_softmax(raw[1], V, rows.logit_bound)};
  double kl[2] = {};
  for (int i : {0, 1})
    for (int64_t v = 0; v < V; ++v) kl[i] += std::exp(log_p[i][v]) * (log_p[i][v] - log_p[1 - i][v]);
  for (int i : {0, 1}) {
    row_loss.data<double>()[4 * (n + i) + 3] = (kl[0] + kl[1]) / 2;
    const double factor = rows.r_drop / 2 * (rows.weights.empty() ? 1.0 : rows.weights[n]);
    for (int64_t v = 0; dlogits && v < V; ++v) {
      if (rows.logit_bound > 0 && std::abs(raw[i][v]) > rows.logit_bound) continue;
      const double p = std::exp(log_p[i][v]), q = std::exp(log_p[1 - i][v]);
      dlogits.data<double>()[(n + i) * V + v] += factor * (p * (log_p[i][v] - log_p[1 - i][v] - kl[i]) + p - q);
    }
  }
}

}  // namespace

void ReferenceBackend::smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) {
  const int64_t V = logits.columns();
  const Ints& targets = rows.targets;
  const double smoothing = rows.smoothing;
  for (size_t n = 0; n < targets.size(); ++n) {
    const double* raw = logits.data<double>() + n * V;
    std::vector<double> clamped(raw, raw + V);
    for (double& v : clamped) v = rows.logit_bound > 0 ? std::clamp(v, -rows.logit_bound, rows.logit_bound) : v;
    const double* z = clamped.data();
    double* out = row_loss.data<double>() + rows.columns() * static_cast<int64_t>(n);
    if (targets[n] < 0) {
      std::fill(out, out + rows.columns(), 0.0);
      if (dlogits) std::fill_n(dlogits.data<double>() + n * V, V, 0.0);
      continue;
    }
    const double top = *std::max_element(z, z + V);
    double sum = 0, mean = 0;
    for (int64_t v = 0; v < V; ++v) {
      sum += std::exp(z[v] - top);
      mean += z[v] / V;
    }
    const double log_sum = top + std::log(sum), nll = log_sum - z[targets[n]];
    out[0] = (1 - smoothing) * nll + smoothing * (log_sum - mean);
    out[1] = nll;
    out[2] = z[targets[n]] == top;
    for (int64_t v = 0; dlogits && v < V; ++v)
      dlogits.data<double>()[n * V + v] = z[v] != raw[v]
                                              ? 0
                                              : (rows.weights.empty() ? 1.0 : rows.weights[n]) *
                                                    (std::exp(z[v] - log_sum) - (v == targets[n] ? 1 - smoothing : 0) - smoothing / V);
  }
  for (size_t n = 0; n < targets.size() && rows.r_drop > 0; n += 2)
    if (targets[n] >= 0) add_consistency(logits, rows, static_cast<int64_t>(n), row_loss, dlogits);
}

void ReferenceBackend::shard_exponentials(const LogitsShard& s, const LossRows& rows) {
  const int64_t V = s.logits.columns();
  for (size_t n = 0; n < rows.targets.size(); ++n) {
    double *z = s.logits.data<double>() + n * V, *sums = s.sums.data<double>() + 3 * n, &top = s.top.data<double>()[n];
    const std::vector<double> raw(z, z + V);
    std::fill(sums, sums + 3, 0.0);
    top = 0;
    if (rows.targets[n] < 0) continue;
    for (int64_t v = 0; v < V && rows.logit_bound > 0; ++v) z[v] = std::clamp(z[v], -rows.logit_bound, rows.logit_bound);
    const int32_t target = s.column_of(rows.targets[n]);
    top = *std::max_element(z, z + V);
    sums[2] = target >= 0 ? z[target] : 0;
    for (int64_t v = 0; v < V; ++v) {
      const double e = std::exp(z[v] - top);
      sums[0] += e;
      sums[1] += z[v];
      z[v] = z[v] != raw[v] ? -e : e;
    }
  }
}

void ReferenceBackend::rescale_shard(const LogitsShard& s, const Tensor& group_top) {
  for (int64_t n = 0; n < s.top.count(); ++n) {
    double& top = s.top.data<double>()[n];
    top = std::exp(top - group_top.data<double>()[n]);
    s.sums.data<double>()[3 * n] *= top;
  }
}

void ReferenceBackend::shard_loss(const LogitsShard& s, const Tensor& group_top, const LossRows& rows, const Tensor& row_loss,
                                  const Tensor& dlogits) {
  const double smoothing = rows.smoothing, V = static_cast<double>(s.vocabulary);
  for (size_t n = 0; n < rows.targets.size(); ++n) {
    const double *sums = s.sums.data<double>() + 3 * n, top = group_top.data<double>()[n];
    write_row_loss(top, sums, rows.targets[n], smoothing, V, row_loss.data<double>() + 3 * n);
    for (int64_t v = 0; dlogits && v < dlogits.columns(); ++v) {
      const double e = at(s.logits, n, v), weight = rows.weights.empty() ? 1.0 : rows.weights[n];
      const double own = s.first + v == rows.targets[n] ? 1 - smoothing : 0;
      at(dlogits, n, v) =
          rows.targets[n] < 0 || std::signbit(e) ? 0 : weight * (e * s.top.data<double>()[n] / sums[0] - own - smoothing / V);
    }
  }
}

void ReferenceBackend::loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) {
  add_loss_sums(row_loss.data<double>(), rows, sums.data<double>());
}

void ReferenceBackend::top_logits(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices, const Tensor& denominator) {
  const int64_t V = logits.columns();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const double *z = logits.data<double>() + r * V, top = *std::max_element(z, z + V);
    double sum = 0;
    for (int64_t v = 0; v < V; ++v) sum += std::exp(z[v] - top);
    const std::vector<int32_t> order = best_first(z, V, k);
    std::copy(order.begin(), order.begin() + k, indices.data<int32_t>() + r * k);
    for (int64_t i = 0; i < k; ++i) at(values, r, i) = z[order[i]];
    at(denominator, r, 0) = top;
    at(denominator, r, 1) = sum;
  }
}

void ReferenceBackend::linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                         const Tensor& indices, const Tensor& denominator) {
  const Tensor logits({x.rows(), w.out}, DType::f64);
  linear(x, w, b, logits, Activation::none, Write::overwrite);
  if (bound > 0) clamp(logits, bound, logits, {});
  top_logits(logits.rows(0, values.rows()), k, values, indices, denominator);
}

void ReferenceBackend::sample(const Tensor& logits, const HostDeviceArray<double>& uniform, const Tensor& tokens) {
  const int64_t V = logits.columns();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const double* z = logits.data<double>() + r * V;
    const double top = *std::max_element(z, z + V);
    double total = 0, before = 0;
    for (int64_t v = 0; v < V; ++v) total += std::exp(z[v] - top);
    int32_t& token = tokens.data<int32_t>()[r];
    token = 0;
    for (int64_t v = 0; v < V && before <= uniform[r] * total; ++v) {
      const double p = std::exp(z[v] - top);
      if (p > 0) token = static_cast<int32_t>(v);
      before += p;
    }
  }
}

}  // namespace starling
