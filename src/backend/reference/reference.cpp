// The specification of every op: double precision, one loop per index, no cleverness. Tests compare the other backends with it.
#include "backend/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/backend.h"
#include "backend/dropout.h"

namespace starling {
namespace {

struct ReferencePacked : Packed {
  std::vector<double> w;  // [in, out]
};

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

  void linear(const Tensor& x, const Packed& packed, const Tensor& b, const Tensor& y, Activation activation, Write write) override {
    const auto& p = static_cast<const ReferencePacked&>(packed);
    CHECK(x.columns() == p.in && y.columns() == p.out && x.rows() == y.rows(), "{} times [{}, {}] into {}", x.shape().text(), p.in, p.out,
          y.shape().text());
    const double* xs = x.data<double>();
    double* ys = y.data<double>();
    for (int64_t n = 0; n < x.rows(); ++n)
      for (int64_t o = 0; o < p.out; ++o) {
        double sum = b ? b.data<double>()[o] : 0;
        for (int64_t i = 0; i < p.in; ++i) sum += xs[n * p.in + i] * p.w[i * p.out + o];
        if (activation == Activation::relu) sum = std::max(sum, 0.0);
        double& out = ys[n * p.out + o];
        out = write == Write::accumulate ? out + sum : sum;
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
        y.data<double>()[n * D + c] =
            tokens[n] < 0 ? 0 : keep(d, n, c) * (scale * table.data<double>()[tokens[n] * D + c] + sinusoid(positions[n], c, D));
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
                     std::span<const int32_t> index, std::span<const int32_t> offsets, int64_t heads, const Tensor& y) override {
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
        for (int64_t c = 0; c < dh; ++c) {
          double out = 0;
          for (int64_t j = 0; j < length; ++j) out += p[j] / sum * at(kv, index[offsets[r] + j], v_column + h * dh + c);
          at(y, r, h * dh + c) = out;
        }
      }
  }

  void smoothed_loss(const Tensor& logits, std::span<const int32_t> targets, double smoothing, const Tensor& row_loss,
                     const Tensor& dlogits) override {
    const int64_t V = logits.columns();
    for (size_t n = 0; n < targets.size(); ++n) {
      const double* z = logits.data<double>() + n * V;
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
        dlogits.data<double>()[n * V + v] = std::exp(z[v] - log_sum) - (v == targets[n] ? 1 - smoothing : 0) - smoothing / V;
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

  void moving_average(const Tensor& value, const Tensor& average, double decay) override {
    for (int64_t i = 0; i < value.count(); ++i)
      average.data<double>()[i] = decay * average.data<double>()[i] + (1 - decay) * value.data<double>()[i];
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
