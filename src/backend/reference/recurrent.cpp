// What recurrent models need: steps of LSTM layers and attention with one head.
#include <algorithm>
#include <cmath>

#include "backend/reference/reference_backend.h"

namespace starling {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A cell in either of its forms.
double cell_at(const Tensor& t, int64_t i, double bound) {
  return t.dtype() == DType::i16 ? t.data<int16_t>()[i] * bound / 32767 : t.data<double>()[i];
}

}  // namespace

void ReferenceBackend::lstm_step(const LstmStep& s) {
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
      if (s.bound > 0) {
        clipped += std::abs(cell) > s.bound;
        cell = std::clamp(cell, -s.bound, s.bound);
      }
      if (s.cell.dtype() == DType::i16)
        s.cell.data<int16_t>()[r * H + c] = static_cast<int16_t>(std::nearbyint(cell * 32767 / s.bound));
      else
        s.cell.data<double>()[r * H + c] = cell;
      at(s.hidden, r, c) = gate[3] * (s.tanh_output ? std::tanh(cell) : cell);
    }
  add_number(s.clipped, static_cast<double>(clipped));
}

void ReferenceBackend::lstm_step_backward(const LstmStepBackward& s) {
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

void ReferenceBackend::ssru(const Ssru& s) {
  const int64_t N = s.hidden.rows(), H = s.hidden.columns();
  for (int64_t i = 0; i < N * H; ++i) s.cell.data<double>()[i] = s.hidden.data<double>()[i] = 0;
  for (size_t b = 0; b + 1 < s.offsets.size(); ++b)
    for (int64_t c = 0; c < H; ++c) {
      double cell = s.before ? at(s.before, static_cast<int64_t>(b), c) : 0;
      for (int64_t n = s.offsets[b]; n < s.offsets[b + 1]; ++n) {
        const double f = sigmoid(at(s.forget, n, c));
        cell = f * cell + (1 - f) * at(s.candidate, n, c);
        at(s.cell, n, c) = cell;
        at(s.hidden, n, c) = std::max(cell, 0.0);
      }
    }
}

void ReferenceBackend::ssru_backward(const SsruBackward& s) {
  const int64_t N = s.dhidden.rows(), H = s.dhidden.columns();
  for (int64_t i = 0; i < N * H; ++i) s.dcandidate.data<double>()[i] = s.dforget.data<double>()[i] = 0;
  for (size_t b = 0; b + 1 < s.offsets.size(); ++b)
    for (int64_t c = 0; c < H; ++c) {
      double dcell = 0;  // from the next row
      for (int64_t n = s.offsets[b + 1] - 1; n >= s.offsets[b]; --n) {
        const double f = sigmoid(at(s.forget, n, c)), before = n > s.offsets[b] ? at(s.cell, n - 1, c) : 0;
        if (at(s.cell, n, c) > 0) dcell += at(s.dhidden, n, c);
        at(s.dcandidate, n, c) = dcell * (1 - f);
        at(s.dforget, n, c) = dcell * (before - at(s.candidate, n, c)) * f * (1 - f);
        dcell *= f;
      }
    }
}

void ReferenceBackend::global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) {
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

void ReferenceBackend::global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights,
                                                 const Tensor& dy, const Tensor& dweights, const Tensor& dq, const Tensor& dk,
                                                 const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) {
  const int64_t A = in.q.columns(), D = in.memory.columns();
  dq.zero();
  dk.zero();
  if (dmemory_write == Write::overwrite) dmemory.zero();
  if (dv && dv_write == Write::overwrite) dv.zero();
  const double* p = weights.data<double>();
  for (size_t b = 0; b + 1 < layout.query.size(); ++b) {
    const int64_t keys = layout.key[b + 1] - layout.key[b];
    for (int64_t i = layout.query[b]; i < layout.query[b + 1]; ++i, p += keys) {
      std::vector<double> dp(keys, 0.0);
      double dot = 0;
      for (int64_t j = 0; j < keys; ++j) {
        if (dweights) dp[j] = dweights.data<double>()[p - weights.data<double>() + j];
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
            at(dq, i, c) += pre;
            at(dk, layout.key[b] + j, c) += pre;
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

}  // namespace starling
