// Embeddings, layer norm, dropout, and what goes row by row or element by element.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/reference/reference.h"
#include "backend/reference/reference_backend.h"

namespace starling {

void ReferenceBackend::embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout& d,
                             const Tensor& y) {
  const int64_t D = y.columns();
  for (size_t n = 0; n < tokens.size(); ++n)
    for (int64_t c = 0; c < D; ++c)
      y.data<double>()[n * D + c] = tokens[n] == kPaddingRow
                                        ? 0
                                        : keep(d, n, c) * ((tokens[n] < 0 ? 0.0 : scale * table.data<double>()[tokens[n] * D + c]) +
                                                           (positions.empty() ? 0.0 : sinusoid(positions[n], c, D)));
}

void ReferenceBackend::embed_backward(const Ints& tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) {
  const int64_t D = dy.columns();
  for (size_t n = 0; n < tokens.size(); ++n)
    for (int64_t c = 0; c < D && tokens[n] >= 0; ++c)
      dtable.data<double>()[tokens[n] * D + c] += scale * keep(d, n, c) * dy.data<double>()[n * D + c];
}

void ReferenceBackend::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                                  const Tensor& statistics) {
  const int64_t D = x.columns();
  for (int64_t n = 0; n < x.rows(); ++n) {
    const double* row = x.data<double>() + n * D;
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < D; ++c) mean += row[c] / D;
    for (int64_t c = 0; c < D; ++c) variance += (row[c] - mean) * (row[c] - mean) / D;
    const double rstd = 1 / std::sqrt(variance + epsilon);
    statistics.data<double>()[2 * n] = mean;
    statistics.data<double>()[2 * n + 1] = rstd;
    for (int64_t c = 0; c < D; ++c) y.data<double>()[n * D + c] = (row[c] - mean) * rstd * gamma.data<double>()[c] + beta.data<double>()[c];
  }
}

void ReferenceBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics,
                                           const Tensor& dx, Write dx_write, const Tensor& dgamma, const Tensor& dbeta,
                                           Write parameter_write) {
  const int64_t D = x.columns();
  if (parameter_write == Write::overwrite) {
    dgamma.zero();
    dbeta.zero();
  }
  for (int64_t n = 0; n < x.rows(); ++n) {
    const double mean = statistics.data<double>()[2 * n], rstd = statistics.data<double>()[2 * n + 1];
    double sum = 0, dot = 0;
    for (int64_t c = 0; c < D; ++c) {
      const double g = dy.data<double>()[n * D + c], h = (x.data<double>()[n * D + c] - mean) * rstd;
      sum += g * gamma.data<double>()[c];
      dot += g * gamma.data<double>()[c] * h;
      dgamma.data<double>()[c] += g * h;
      dbeta.data<double>()[c] += g;
    }
    for (int64_t c = 0; c < D; ++c) {
      const double g = dy.data<double>()[n * D + c] * gamma.data<double>()[c], h = (x.data<double>()[n * D + c] - mean) * rstd;
      const double value = rstd * (g - sum / D - h * dot / D);
      double& out = dx.data<double>()[n * D + c];
      out = dx_write == Write::accumulate ? out + value : value;
    }
  }
}

void ReferenceBackend::add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) {
  const int64_t D = s.columns();
  for (int64_t i = 0; i < s.count(); ++i) y.data<double>()[i] = (x ? x.data<double>()[i] : 0) + keep(d, i / D, i % D) * s.data<double>()[i];
}

void ReferenceBackend::dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) {
  const int64_t D = dy.columns();
  for (int64_t i = 0; i < dy.count(); ++i) {
    const double value = keep(d, i / D, i % D) * dy.data<double>()[i];
    double& out = ds.data<double>()[i];
    out = write == Write::accumulate ? out + value : value;
  }
}

void ReferenceBackend::relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh, const Tensor& db, Write db_write) {
  for (int64_t i = 0; i < h.count(); ++i) dh.data<double>()[i] *= h.data<double>()[i] > 0 ? scale : 0;
  if (db) column_sums(dh, db, db_write);
}

namespace {

// x sigmoid(factor x) and its derivative.
std::pair<double, double> gated(double x, double factor) {
  const double s = 1 / (1 + std::exp(-factor * x));
  return {x * s, s + x * factor * s * (1 - s)};
}

// The activation of x and its derivative.
std::pair<double, double> activated(double x, Activation a) {
  constexpr double kPi = 3.14159265358979323846;
  switch (a) {
    case Activation::none:
      return {x, 1};
    case Activation::relu:
      return {std::max(x, 0.0), x > 0 ? 1 : 0};
    case Activation::swish:
      return gated(x, 1);
    case Activation::gelu: {
      const double phi = std::erfc(-x / std::sqrt(2.0)) / 2;
      return {x * phi, phi + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi)};
    }
    case Activation::gelu_tanh: {
      const double k = std::sqrt(2 / kPi), t = std::tanh(k * (x + 0.044715 * x * x * x));
      return {x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) / 2 * k * (1 + 3 * 0.044715 * x * x)};
    }
    case Activation::gelu_sigmoid:
      return gated(x, 1.702);
  }
  CHECK(false, "activation {}", static_cast<int>(a));
}

}  // namespace

void ReferenceBackend::activate(const Tensor& x, Activation a, const Tensor& y) {
  for (int64_t i = 0; i < x.count(); ++i) y.data<double>()[i] = activated(x.data<double>()[i], a).first;
}

void ReferenceBackend::activate_backward(const Tensor& x, Activation a, const Tensor& dy) {
  for (int64_t i = 0; i < x.count(); ++i) dy.data<double>()[i] *= activated(x.data<double>()[i], a).second;
}

void ReferenceBackend::add(const Tensor& x, const Tensor& y) {
  for (int64_t i = 0; i < x.count(); ++i) y.data<double>()[i] += x.data<double>()[i];
}

void ReferenceBackend::gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write write) {
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

void ReferenceBackend::scatter_rows(const Tensor& x, int64_t x_column, const Ints& index, const Tensor& y) {
  for (size_t n = 0; n < index.size(); ++n)
    for (int64_t c = 0; c < y.columns(); ++c) at(y, index[n], c) = at(x, static_cast<int64_t>(n), x_column + c);
}

void ReferenceBackend::copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) {
  for (int64_t n = 0; n < x.rows(); ++n)
    for (int64_t c = 0; c < width; ++c) {
      double& out = at(y, n, y_column + c);
      out = (write == Write::accumulate ? out : 0) + at(x, n, x_column + c);
    }
}

void ReferenceBackend::clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) {
  int64_t beyond = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    const double v = x.data<double>()[i];
    beyond += std::abs(v) > bound;
    y.data<double>()[i] = std::clamp(v, -bound, bound);
  }
  add_number(clipped, static_cast<double>(beyond));
}

void ReferenceBackend::clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) {
  for (int64_t i = 0; i < x.count(); ++i) {
    double& out = dx.data<double>()[i];
    out = (write == Write::accumulate ? out : 0) + (std::abs(x.data<double>()[i]) <= bound ? dy.data<double>()[i] : 0);
  }
}

}  // namespace starling
