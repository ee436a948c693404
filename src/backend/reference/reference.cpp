// The specification of every op: double precision, one loop per index, no cleverness. Tests compare the other backends with it.
#include "backend/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backend/backend.h"
#include "backend/dropout.h"

namespace starling {
namespace {

struct ReferencePacked : Packed {
  std::vector<double> w;      // [in, out]
  std::vector<double> scale;  // [out], quantised only
  double input_bound = 0;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A cell in either of its forms.
double cell_at(const Tensor& t, int64_t i, double bound) {
  return t.dtype() == DType::i16 ? t.data<int16_t>()[i] * bound / 32767 : t.data<double>()[i];
}

double keep(const Dropout& d, int64_t row, int64_t column) {
  if (!d.active()) return 1;
  const uint32_t bits = dropout_bits(d.key, d.rows->sentence[row], d.rows->position[row], column);
  return bits < d.threshold() ? 0 : static_cast<double>(d.scale());
}

class ReferenceBackend : public Backend {
 public:
  std::string describe() const override { return "reference (f64, naive)"; }
  DType activation() const override { return DType::f64; }
  DType parameter() const override { return DType::f64; }

  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed>) override {
    auto p = std::make_shared<ReferencePacked>();
    p->in = w.dim(transposed ? 1 : 0), p->out = w.dim(transposed ? 0 : 1);
    p->w.resize(w.count());
    const double* src = w.data<double>();
    for (int64_t i = 0; i < p->in; ++i)
      for (int64_t o = 0; o < p->out; ++o) p->w[i * p->out + o] = transposed ? src[o * p->in + i] : src[i * p->out + o];
    return p;
  }

  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double input_bound) override {
    auto p = std::static_pointer_cast<ReferencePacked>(pack(w, transposed, nullptr));
    p->quantized = true, p->input_bound = input_bound;
    for (int64_t o = 0; o < p->out; ++o) {
      double scale = 0;
      for (int64_t i = 0; i < p->in; ++i) scale = std::max(scale, std::abs(p->w[i * p->out + o]));
      for (int64_t i = 0; i < p->in && scale > 0; ++i) p->w[i * p->out + o] = std::nearbyint(127 * p->w[i * p->out + o] / scale);
      p->scale.push_back(scale);
    }
    return p;
  }

  void linear(const Tensor& x, const Packed& packed, const Tensor& b, const Tensor& y, Activation activation, Write write) override {
    const auto& p = static_cast<const ReferencePacked&>(packed);
    CHECK(x.columns() == p.in && y.columns() == p.out && x.rows() == y.rows(), "{} times [{}, {}] into {}", x.shape().text(), p.in, p.out,
          y.shape().text());
    double* ys = y.data<double>();
    for (int64_t n = 0; n < x.rows(); ++n) {
      std::vector<double> xs(x.data<double>() + n * p.in, x.data<double>() + (n + 1) * p.in);
      double unit = 1;
      if (p.quantized) {
        double bound = p.input_bound;
        for (int64_t i = 0; i < p.in && p.input_bound == 0; ++i) bound = std::max(bound, std::abs(xs[i]));
        for (double& v : xs) v = bound == 0 ? 0 * v : std::clamp(std::nearbyint(127 * v / bound), -127.0, 127.0);
        unit = bound / (127 * 127);
      }
      for (int64_t o = 0; o < p.out; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < p.in; ++i) sum += xs[i] * p.w[i * p.out + o];
        sum = (p.quantized ? sum * unit * p.scale[o] : sum) + (b ? b.data<double>()[o] : 0);
        if (activation == Activation::relu) sum = std::max(sum, 0.0);
        double& out = ys[n * p.out + o];
        out = write == Write::accumulate ? out + sum : sum;
      }
    }
  }

  void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) override {
    const int64_t P = a.columns(), Q = c.columns();
    for (int64_t i = 0; i < P; ++i)
      for (int64_t j = 0; j < Q; ++j) {
        double sum = 0;
        for (int64_t n = 0; n < a.rows(); ++n) sum += a.data<double>()[n * P + i] * c.data<double>()[n * Q + j];
        double& out = dw.data<double>()[i * Q + j];
        out = write == Write::accumulate ? out + sum : sum;
      }
  }

  void column_sums(const Tensor& dy, const Tensor& db, Write write) override {
    const int64_t Q = dy.columns();
    for (int64_t j = 0; j < Q; ++j) {
      double sum = 0;
      for (int64_t n = 0; n < dy.rows(); ++n) sum += dy.data<double>()[n * Q + j];
      double& out = db.data<double>()[j];
      out = write == Write::accumulate ? out + sum : sum;
    }
  }

  void embed(std::span<const int32_t> tokens, std::span<const int32_t> positions, const Tensor& table, double scale, const Dropout& d,
             const Tensor& y) override {
    const int64_t D = y.columns();
    for (size_t n = 0; n < tokens.size(); ++n)
      for (int64_t c = 0; c < D; ++c)
        y.data<double>()[n * D + c] = tokens[n] < 0 ? 0
                                                    : keep(d, n, c) * (scale * table.data<double>()[tokens[n] * D + c] +
                                                                       (positions.empty() ? 0.0 : sinusoid(positions[n], c, D)));
  }

  void embed_backward(std::span<const int32_t> tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) override {
    const int64_t D = dy.columns();
    for (size_t n = 0; n < tokens.size(); ++n)
      for (int64_t c = 0; c < D && tokens[n] >= 0; ++c)
        dtable.data<double>()[tokens[n] * D + c] += scale * keep(d, n, c) * dy.data<double>()[n * D + c];
  }

  void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y, const Tensor& statistics) override {
    const int64_t D = x.columns();
    for (int64_t n = 0; n < x.rows(); ++n) {
      const double* row = x.data<double>() + n * D;
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < D; ++c) mean += row[c] / D;
      for (int64_t c = 0; c < D; ++c) variance += (row[c] - mean) * (row[c] - mean) / D;
      const double rstd = 1 / std::sqrt(variance + 1e-5);
      statistics.data<double>()[2 * n] = mean, statistics.data<double>()[2 * n + 1] = rstd;
      for (int64_t c = 0; c < D; ++c)
        y.data<double>()[n * D + c] = (row[c] - mean) * rstd * gamma.data<double>()[c] + beta.data<double>()[c];
    }
  }

  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                           Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) override {
    const int64_t D = x.columns();
    if (parameter_write == Write::overwrite) dgamma.zero(), dbeta.zero();
    for (int64_t n = 0; n < x.rows(); ++n) {
      const double mean = statistics.data<double>()[2 * n], rstd = statistics.data<double>()[2 * n + 1];
      double sum = 0, dot = 0;
      for (int64_t c = 0; c < D; ++c) {
        const double g = dy.data<double>()[n * D + c], h = (x.data<double>()[n * D + c] - mean) * rstd;
        sum += g * gamma.data<double>()[c], dot += g * gamma.data<double>()[c] * h;
        dgamma.data<double>()[c] += g * h, dbeta.data<double>()[c] += g;
      }
      for (int64_t c = 0; c < D; ++c) {
        const double g = dy.data<double>()[n * D + c] * gamma.data<double>()[c], h = (x.data<double>()[n * D + c] - mean) * rstd;
        const double value = rstd * (g - sum / D - h * dot / D);
        double& out = dx.data<double>()[n * D + c];
        out = dx_write == Write::accumulate ? out + value : value;
      }
    }
  }

  void add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) override {
    const int64_t D = s.columns();
    for (int64_t i = 0; i < s.count(); ++i)
      y.data<double>()[i] = (x ? x.data<double>()[i] : 0) + keep(d, i / D, i % D) * s.data<double>()[i];
  }

  void dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) override {
    const int64_t D = dy.columns();
    for (int64_t i = 0; i < dy.count(); ++i) {
      const double value = keep(d, i / D, i % D) * dy.data<double>()[i];
      double& out = ds.data<double>()[i];
      out = write == Write::accumulate ? out + value : value;
    }
  }

  void relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh) override {
    for (int64_t i = 0; i < h.count(); ++i) dh.data<double>()[i] *= h.data<double>()[i] > 0 ? scale : 0;
  }

  void add(const Tensor& x, const Tensor& y) override {
    for (int64_t i = 0; i < x.count(); ++i) y.data<double>()[i] += x.data<double>()[i];
  }

  void gather_rows(const Tensor& x, std::span<const int32_t> index, const Tensor& y, Write write) override {
    const int64_t D = x.columns(), row = D * size_of(x.dtype());
    for (size_t n = 0; n < index.size(); ++n) {
      if (write == Write::overwrite) {
        if (index[n] < 0)
          std::memset(y.raw() + n * row, 0, row);
        else
          std::memcpy(y.raw() + n * row, x.raw() + index[n] * row, row);
      } else {
        for (int64_t c = 0; c < D && index[n] >= 0; ++c) at(y, n, c) += at(x, index[n], c);
      }
    }
  }

  void copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) override {
    for (int64_t n = 0; n < x.rows(); ++n)
      for (int64_t c = 0; c < width; ++c) {
        double& out = at(y, n, y_column + c);
        out = (write == Write::accumulate ? out : 0) + at(x, n, x_column + c);
      }
  }

  int64_t clamp(const Tensor& x, double bound, const Tensor& y) override {
    int64_t beyond = 0;
    for (int64_t i = 0; i < x.count(); ++i) {
      const double v = x.data<double>()[i];
      beyond += std::abs(v) > bound;
      y.data<double>()[i] = std::clamp(v, -bound, bound);
    }
    return beyond;
  }

  void clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) override {
    for (int64_t i = 0; i < x.count(); ++i) {
      double& out = dx.data<double>()[i];
      out = (write == Write::accumulate ? out : 0) + (std::abs(x.data<double>()[i]) <= bound ? dy.data<double>()[i] : 0);
    }
  }

  int64_t lstm_step(const LstmStep& s) override {
    const int64_t R = s.hidden.rows(), H = s.hidden.columns();
    int64_t clipped = 0;
    for (int64_t r = 0; r < R; ++r)
      for (int64_t c = 0; c < H; ++c) {
        double gate[4];
        for (int64_t k = 0; k < 4; ++k) {
          gate[k] = at(s.gates, r, k * H + c) + (r < s.past ? at(s.recurrent, r, k * H + c) : 0);
          gate[k] = at(s.gates, r, k * H + c) = k == 2 ? std::tanh(gate[k]) : sigmoid(gate[k]);
        }
        double cell = gate[0] * gate[2] + (r < s.past ? gate[1] * cell_at(s.cell_before, r * H + c, s.bound) : 0);
        if (s.bound > 0) clipped += std::abs(cell) > s.bound, cell = std::clamp(cell, -s.bound, s.bound);
        if (s.cell.dtype() == DType::i16)
          s.cell.data<int16_t>()[r * H + c] = static_cast<int16_t>(std::nearbyint(cell * 32767 / s.bound));
        else
          s.cell.data<double>()[r * H + c] = cell;
        at(s.hidden, r, c) = gate[3] * (s.tanh_output ? std::tanh(cell) : cell);
      }
    return clipped;
  }

  void lstm_step_backward(const LstmStepBackward& s) override {
    const int64_t R = s.dhidden.rows(), H = s.dhidden.columns();
    for (int64_t r = 0; r < R; ++r)
      for (int64_t c = 0; c < H; ++c) {
        const double i = at(s.gates, r, c), f = at(s.gates, r, H + c), g = at(s.gates, r, 2 * H + c), o = at(s.gates, r, 3 * H + c);
        const double cell = at(s.cell, r, c), before = r < s.past ? at(s.cell_before, r, c) : 0;
        const double dh = at(s.dhidden, r, c) + (r < s.next ? at(s.drecurrent, r, c) : 0);
        const double squashed = s.tanh_output ? std::tanh(cell) : cell;
        double dc = dh * o * (s.tanh_output ? 1 - squashed * squashed : 1) + (r < s.next ? at(s.dcell, r, c) : 0);
        if (s.bound > 0 && std::abs(cell) >= s.bound) dc = 0;
        at(s.gates, r, c) = dc * g * i * (1 - i);
        at(s.gates, r, H + c) = dc * before * f * (1 - f);
        at(s.gates, r, 2 * H + c) = dc * i * (1 - g * g);
        at(s.gates, r, 3 * H + c) = dh * squashed * o * (1 - o);
        at(s.dcell, r, c) = dc * f;
      }
  }

  void attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y, const Tensor& lse) override {
    const int64_t D = y.columns(), dh = D / layout.heads;
    for (size_t b = 0; b + 1 < layout.query.size(); ++b)
      for (int64_t h = 0; h < layout.heads; ++h)
        for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i) {
          const std::vector<double> p = probabilities(in, layout, b, h, i, dh, lse, true);
          Dropout masks = d;
          masks.key = dropout_head_key(d.key, h);
          for (int64_t c = 0; c < dh; ++c) {
            double sum = 0;
            for (size_t j = 0; j < p.size(); ++j) sum += p[j] * keep(masks, i, j) * at(in.kv, layout.key[b] + j, in.v_column + h * dh + c);
            y.data<double>()[i * D + h * dh + c] = sum;
          }
        }
  }

  void attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse, const Tensor& dy,
                          const Tensor& dq, const Tensor& dkv) override {
    const int64_t D = dy.columns(), dh = D / layout.heads;
    const double scale = 1 / std::sqrt(static_cast<double>(dh));
    clear(dq, in.q_column, D), clear(dkv, in.k_column, D), clear(dkv, in.v_column, D);
    for (size_t b = 0; b + 1 < layout.query.size(); ++b)
      for (int64_t h = 0; h < layout.heads; ++h)
        for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i) {
          const std::vector<double> p = probabilities(in, layout, b, h, i, dh, lse, false);
          Dropout masks = d;
          masks.key = dropout_head_key(d.key, h);
          std::vector<double> dp(p.size(), 0.0);
          double dot = 0;
          for (size_t j = 0; j < p.size(); ++j) {
            for (int64_t c = 0; c < dh; ++c) dp[j] += at(dy, i, h * dh + c) * at(in.kv, layout.key[b] + j, in.v_column + h * dh + c);
            dp[j] *= keep(masks, i, j);
            dot += p[j] * dp[j];
          }
          for (size_t j = 0; j < p.size(); ++j) {
            const int64_t key = layout.key[b] + j;
            const double ds = p[j] * (dp[j] - dot) * scale;
            for (int64_t c = 0; c < dh; ++c) {
              at(dq, i, in.q_column + h * dh + c) += ds * at(in.kv, key, in.k_column + h * dh + c);
              at(dkv, key, in.k_column + h * dh + c) += ds * at(in.q, i, in.q_column + h * dh + c);
              at(dkv, key, in.v_column + h * dh + c) += p[j] * keep(masks, i, j) * at(dy, i, h * dh + c);
            }
          }
        }
  }

  void attend_cached(const Tensor& q, int64_t q_column, const Tensor& kv, int64_t k_column, int64_t v_column,
                     std::span<const int32_t> index, std::span<const int32_t> offsets, int64_t heads, const Tensor& y,
                     std::span<float> weights) override {
    std::fill(weights.begin(), weights.end(), 0.0f);
    const int64_t D = y.columns(), dh = D / heads;
    for (size_t r = 0; r + 1 < offsets.size(); ++r)
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t length = offsets[r + 1] - offsets[r];
        std::vector<double> p(length, 0.0);
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < length; ++j) {
          for (int64_t c = 0; c < dh; ++c) p[j] += at(q, r, q_column + h * dh + c) * at(kv, index[offsets[r] + j], k_column + h * dh + c);
          p[j] /= std::sqrt(static_cast<double>(dh));
          top = std::max(top, p[j]);
        }
        for (double& v : p) sum += v = std::exp(v - top);
        for (int64_t j = 0; j < length && !weights.empty(); ++j)
          weights[offsets[r] + j] += static_cast<float>(p[j] / sum / static_cast<double>(heads));
        for (int64_t c = 0; c < dh; ++c) {
          double out = 0;
          for (int64_t j = 0; j < length; ++j) out += p[j] / sum * at(kv, index[offsets[r] + j], v_column + h * dh + c);
          at(y, r, h * dh + c) = out;
        }
      }
  }

  void global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) override {
    const int64_t A = in.q.columns(), D = in.memory.columns();
    double* p = weights.data<double>();
    y.zero();
    for (size_t b = 0; b + 1 < layout.query.size(); ++b) {
      const int64_t keys = layout.key[b + 1] - layout.key[b];
      for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i, p += keys) {
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (int64_t c = 0; c < A; ++c) {
            const double q = at(in.q, i, c), k = at(in.k, layout.key[b] + j, c);
            score += in.v ? in.v.data<double>()[c] * std::tanh(q + k) : q * k / std::sqrt(static_cast<double>(A));
          }
          top = std::max(top, p[j] = score);
        }
        for (int64_t j = 0; j < keys; ++j) sum += p[j] = std::exp(p[j] - top);
        for (int64_t j = 0; j < keys; ++j) {
          p[j] /= sum;
          for (int64_t c = 0; c < D; ++c) at(y, i, c) += p[j] * at(in.memory, layout.key[b] + j, c);
        }
      }
    }
  }

  void global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights, const Tensor& dy,
                                 const Tensor& dq, const Tensor& dk, const Tensor& dmemory, Write dmemory_write, const Tensor& dv,
                                 Write dv_write) override {
    const int64_t A = in.q.columns(), D = in.memory.columns();
    dq.zero(), dk.zero();
    if (dmemory_write == Write::overwrite) dmemory.zero();
    if (dv && dv_write == Write::overwrite) dv.zero();
    const double* p = weights.data<double>();
    for (size_t b = 0; b + 1 < layout.query.size(); ++b) {
      const int64_t keys = layout.key[b + 1] - layout.key[b];
      for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i, p += keys) {
        std::vector<double> dp(keys, 0.0);
        double dot = 0;
        for (int64_t j = 0; j < keys; ++j) {
          for (int64_t c = 0; c < D; ++c) {
            dp[j] += at(dy, i, c) * at(in.memory, layout.key[b] + j, c);
            at(dmemory, layout.key[b] + j, c) += p[j] * at(dy, i, c);
          }
          dot += p[j] * dp[j];
        }
        for (int64_t j = 0; j < keys; ++j) {
          const double ds = p[j] * (dp[j] - dot);
          for (int64_t c = 0; c < A; ++c) {
            const double q = at(in.q, i, c), k = at(in.k, layout.key[b] + j, c);
            if (in.v) {
              const double t = std::tanh(q + k), pre = ds * in.v.data<double>()[c] * (1 - t * t);
              at(dq, i, c) += pre, at(dk, layout.key[b] + j, c) += pre;
              dv.data<double>()[c] += ds * t;
            } else {
              at(dq, i, c) += ds * k / std::sqrt(static_cast<double>(A));
              at(dk, layout.key[b] + j, c) += ds * q / std::sqrt(static_cast<double>(A));
            }
          }
        }
      }
    }
  }

  void smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) override {
    const int64_t V = logits.columns();
    const auto targets = rows.targets;
    const double smoothing = rows.smoothing;
    for (size_t n = 0; n < targets.size(); ++n) {
      const double* raw = logits.data<double>() + n * V;
      std::vector<double> clamped(raw, raw + V);
      for (double& v : clamped) v = rows.logit_bound > 0 ? std::clamp(v, -rows.logit_bound, rows.logit_bound) : v;
      const double* z = clamped.data();
      double* out = row_loss.data<double>() + 3 * n;
      if (targets[n] < 0) {
        std::fill(out, out + 3, 0.0);
        if (dlogits) std::fill_n(dlogits.data<double>() + n * V, V, 0.0);
        continue;
      }
      const double top = *std::max_element(z, z + V);
      double sum = 0, mean = 0;
      for (int64_t v = 0; v < V; ++v) sum += std::exp(z[v] - top), mean += z[v] / V;
      const double log_sum = top + std::log(sum), nll = log_sum - z[targets[n]];
      out[0] = (1 - smoothing) * nll + smoothing * (log_sum - mean), out[1] = nll, out[2] = z[targets[n]] == top;
      for (int64_t v = 0; dlogits && v < V; ++v)
        dlogits.data<double>()[n * V + v] = z[v] != raw[v]
                                                ? 0
                                                : (rows.weights.empty() ? 1.0 : rows.weights[n]) *
                                                      (std::exp(z[v] - log_sum) - (v == targets[n] ? 1 - smoothing : 0) - smoothing / V);
    }
  }

  void log_softmax_top_k(const Tensor& logits, int64_t k, std::span<float> values, std::span<int32_t> indices) override {
    const int64_t V = logits.columns();
    for (int64_t r = 0; r < logits.rows(); ++r) {
      const double* z = logits.data<double>() + r * V;
      const double top = *std::max_element(z, z + V);
      double sum = 0;
      for (int64_t v = 0; v < V; ++v) sum += std::exp(z[v] - top);
      std::vector<int32_t> order(V);
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(),
                        [&](int32_t a, int32_t b) { return z[a] != z[b] ? z[a] > z[b] : a < b; });
      for (int64_t i = 0; i < k; ++i)
        indices[r * k + i] = order[i], values[r * k + i] = static_cast<float>(z[order[i]] - top - std::log(sum));
    }
  }

  void sample(const Tensor& logits, std::span<const double> uniform, std::span<int32_t> tokens) override {
    const int64_t V = logits.columns();
    for (int64_t r = 0; r < logits.rows(); ++r) {
      const double* z = logits.data<double>() + r * V;
      const double top = *std::max_element(z, z + V);
      double total = 0, before = 0;
      for (int64_t v = 0; v < V; ++v) total += std::exp(z[v] - top);
      tokens[r] = 0;
      for (int64_t v = 0; v < V && before <= uniform[r] * total; ++v) {
        const double p = std::exp(z[v] - top);
        if (p > 0) tokens[r] = static_cast<int32_t>(v);
        before += p;
      }
    }
  }

  double sum_of_squares(const Tensor& x) override {
    double sum = 0;
    for (int64_t i = 0; i < x.count(); ++i) sum += x.data<double>()[i] * x.data<double>()[i];
    return sum;
  }

  void adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& s) override {
    const double c1 = 1 - std::pow(s.beta1, s.update), c2 = 1 - std::pow(s.beta2, s.update);
    for (int64_t i = 0; i < value.count(); ++i) {
      double& x = value.data<double>()[i];
      const double g = gradient.data<double>()[i] * s.scale + (s.decoupled ? 0 : s.weight_decay * x);
      double& first = m.data<double>()[i];
      double& second = v.data<double>()[i];
      first = s.beta1 * first + (1 - s.beta1) * g;
      second = s.beta2 * second + (1 - s.beta2) * g * g;
      x -= s.rate * (first / c1 / (std::sqrt(second / c2) + s.epsilon) + (s.decoupled ? s.weight_decay * x : 0));
    }
  }

  void adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& s) override {
    for (int64_t i = 0; i < value.count(); ++i) {
      double& x = value.data<double>()[i];
      const double g = gradient.data<double>()[i] * s.scale + s.weight_decay * x;
      double& squares = v.data<double>()[i];
      squares += g * g;
      x -= s.rate * g / (std::sqrt(squares) + s.epsilon);
    }
  }

  void sgd(const Tensor& value, const Tensor& gradient, const SgdStep& s) override {
    for (int64_t i = 0; i < value.count(); ++i) {
      double& x = value.data<double>()[i];
      x -= s.rate * (s.scale * gradient.data<double>()[i] + s.weight_decay * x);
    }
  }

  void moving_average(const Tensor& value, const Tensor& average, double decay) override {
    for (int64_t i = 0; i < value.count(); ++i)
      average.data<double>()[i] = decay * average.data<double>()[i] + (1 - decay) * value.data<double>()[i];
  }

  int64_t compress(const Compression& c) override { return reference_compress(c); }
  void decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) override {
    reference_decompress(layout, codes, scale, sum);
  }

 private:
  static double& at(const Tensor& t, int64_t row, int64_t column) { return t.data<double>()[row * t.columns() + column]; }

  static void clear(const Tensor& t, int64_t column, int64_t D) {
    for (int64_t n = 0; n < t.rows(); ++n)
      for (int64_t c = 0; c < D; ++c) at(t, n, column + c) = 0;
  }

  static std::vector<double> probabilities(const AttentionInput& in, const AttentionLayout& layout, size_t b, int64_t h, int64_t i,
                                           int64_t dh, const Tensor& lse, bool store) {
    int64_t length = layout.key[b + 1] - layout.key[b];
    if (layout.causal) length = std::min<int64_t>(length, i - layout.query[b] + 1);
    std::vector<double> p(length, 0.0);
    double sum = 0;
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t c = 0; c < dh; ++c)
        p[j] += at(in.q, i, in.q_column + h * dh + c) * at(in.kv, layout.key[b] + j, in.k_column + h * dh + c);
      p[j] /= std::sqrt(static_cast<double>(dh));
    }
    const double top = *std::max_element(p.begin(), p.end());
    for (double v : p) sum += std::exp(v - top);
    const double log_sum = store ? top + std::log(sum) : at(lse, i, h);
    if (store) at(lse, i, h) = log_sum;
    for (double& v : p) v = std::exp(v - log_sum);
    return p;
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

double sinusoid(int64_t position, int64_t column, int64_t width) {
  const int64_t half = width / 2, pair = column < half ? column : column - half;
  const double angle = position * std::exp(-std::log(10000.0) * pair / std::max<int64_t>(half - 1, 1));
  return column < half ? std::sin(angle) : column < 2 * half ? std::cos(angle) : 0;
}

}  // namespace starling
