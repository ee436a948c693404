// Attention with heads: by sentence and head in training, by row over cached keys in decoding.
#include <algorithm>
#include <cmath>

#include "backend/reference/reference_backend.h"

namespace starling {
namespace {

// The masks of one head.
Dropout of_head(Dropout d, int64_t head) {
  d.key = dropout_head_key(d.key, head);
  return d;
}

}  // namespace

double ReferenceBackend::relative_score(const RelativeBins& r, int64_t row, int64_t head, int64_t ahead) {
  return r.reach > 0 ? at(r.scores, row, head * r.bins() + r.bin(ahead)) : 0;
}

void ReferenceBackend::clear(const Tensor& t, int64_t column, int64_t D) {
  for (int64_t n = 0; n < t.rows(); ++n)
    for (int64_t c = 0; c < D; ++c) at(t, n, column + c) = 0;
}

std::vector<double> ReferenceBackend::probabilities(const AttentionInput& in, const AttentionLayout& layout, size_t b, int64_t h, int64_t i,
                                                    int64_t dh, const Tensor& lse, bool store) {
  int64_t length = layout.key[b + 1] - layout.key[b];
  if (layout.causal) length = std::min<int64_t>(length, i - layout.query[b] + 1);
  std::vector<double> p(length, 0.0);
  double sum = 0;
  for (int64_t j = 0; j < length; ++j) {
    for (int64_t c = 0; c < dh; ++c) p[j] += at(in.q, i, in.q_column + h * dh + c) * at(in.kv, layout.key[b] + j, in.k_column + h * dh + c);
    p[j] = (p[j] + relative_score(in.relative, i, h, j - (i - layout.query[b]))) / std::sqrt(static_cast<double>(dh));
  }
  const double top = *std::max_element(p.begin(), p.end());
  for (double v : p) sum += std::exp(v - top);
  const double log_sum = store ? top + std::log(sum) : at(lse, i, h);
  if (store) at(lse, i, h) = log_sum;
  for (double& v : p) v = std::exp(v - log_sum);
  return p;
}

void ReferenceBackend::attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y,
                                 const Tensor& lse) {
  const int64_t D = y.columns(), dh = D / layout.heads;
  clear(y.rows(layout.query.back(), y.rows()), 0, D);
  if (in.relative.reach > 0) in.relative.mass.zero();
  for (size_t b = 0; b + 1 < layout.query.size(); ++b)
    for (int64_t h = 0; h < layout.heads; ++h) {
      const Dropout masks = of_head(d, layout.first_head + h);
      for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i) {
        const std::vector<double> p = probabilities(in, layout, b, h, i, dh, lse, true);
        for (int64_t c = 0; c < dh; ++c) {
          double sum = 0;
          for (size_t j = 0; j < p.size(); ++j) sum += p[j] * keep(masks, i, j) * at(in.kv, layout.key[b] + j, in.v_column + h * dh + c);
          y.data<double>()[i * D + h * dh + c] = sum;
        }
        for (size_t j = 0; j < p.size() && in.relative.reach > 0; ++j)
          at(in.relative.mass, i, h * in.relative.bins() + in.relative.bin(static_cast<int64_t>(j) - (i - layout.query[b]))) +=
              p[j] * keep(masks, i, j);
      }
    }
}

void ReferenceBackend::attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse,
                                          const Tensor& dy, const Tensor& dq, const Tensor& dkv) {
  const int64_t D = dy.columns(), dh = D / layout.heads;
  const double scale = 1 / std::sqrt(static_cast<double>(dh));
  clear(dq, in.q_column, D);
  clear(dkv, in.k_column, D);
  clear(dkv, in.v_column, D);
  const RelativeBins& relative = in.relative;
  if (relative.reach > 0) relative.dscores.zero();
  for (size_t b = 0; b + 1 < layout.query.size(); ++b)
    for (int64_t h = 0; h < layout.heads; ++h) {
      const Dropout masks = of_head(d, layout.first_head + h);
      for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i) {
        const std::vector<double> p = probabilities(in, layout, b, h, i, dh, lse, false);
        std::vector<double> dp(p.size(), 0.0);
        double dot = 0;
        const auto column = [&](size_t j) {  // of the key's bin
          return h * relative.bins() + relative.bin(static_cast<int64_t>(j) - (i - layout.query[b]));
        };
        for (size_t j = 0; j < p.size(); ++j) {
          for (int64_t c = 0; c < dh; ++c) dp[j] += at(dy, i, h * dh + c) * at(in.kv, layout.key[b] + j, in.v_column + h * dh + c);
          if (relative.reach > 0) dp[j] += at(relative.dmass, i, column(j));
          dp[j] *= keep(masks, i, j);
          dot += p[j] * dp[j];
        }
        for (size_t j = 0; j < p.size(); ++j) {
          const int64_t key = layout.key[b] + j;
          const double ds = p[j] * (dp[j] - dot) * scale;
          if (relative.reach > 0) at(relative.dscores, i, column(j)) += ds;
          for (int64_t c = 0; c < dh; ++c) {
            at(dq, i, in.q_column + h * dh + c) += ds * at(in.kv, key, in.k_column + h * dh + c);
            at(dkv, key, in.k_column + h * dh + c) += ds * at(in.q, i, in.q_column + h * dh + c);
            at(dkv, key, in.v_column + h * dh + c) += p[j] * keep(masks, i, j) * at(dy, i, h * dh + c);
          }
        }
      }
    }
}

void ReferenceBackend::attend_cached(const AttentionInput& in, const Ints& index, const Ints& offsets, int64_t heads, const Tensor& y,
                                     const Tensor& weights) {
  const auto& [q, kv, q_column, k_column, v_column, relative] = in;
  if (weights) weights.zero();
  if (relative.reach > 0) relative.mass.zero();
  const int64_t D = y.columns(), dh = D / heads;
  for (size_t r = 0; r + 1 < offsets.size(); ++r)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t length = offsets[r + 1] - offsets[r];
      std::vector<double> p(length, 0.0);
      double top = -INFINITY, sum = 0;
      for (int64_t j = 0; j < length; ++j) {
        for (int64_t c = 0; c < dh; ++c) p[j] += at(q, r, q_column + h * dh + c) * at(kv, index[offsets[r] + j], k_column + h * dh + c);
        p[j] = (p[j] + relative_score(relative, static_cast<int64_t>(r), h, j + 1 - length)) / std::sqrt(static_cast<double>(dh));
        top = std::max(top, p[j]);
      }
      for (double& v : p) sum += v = std::exp(v - top);
      for (int64_t j = 0; j < length && weights; ++j)
        weights.data<float>()[offsets[r] + j] += static_cast<float>(p[j] / sum / static_cast<double>(heads));
      for (int64_t j = 0; j < length && relative.reach > 0; ++j)
        at(relative.mass, r, h * relative.bins() + relative.bin(j + 1 - length)) += p[j] / sum;
      for (int64_t c = 0; c < dh; ++c) {
        double out = 0;
        for (int64_t j = 0; j < length; ++j) out += p[j] / sum * at(kv, index[offsets[r] + j], v_column + h * dh + c);
        at(y, r, h * dh + c) = out;
      }
    }
}

}  // namespace starling
