// The specification of every op: double precision, one loop per index, no cleverness. Tests compare the other backends with it. Here:
// matrix products.
#include "backend/reference/reference.h"

#include <algorithm>
#include <cmath>

#include "backend/reference/reference_backend.h"

namespace starling {
namespace {

struct ReferencePacked : Packed {
  std::vector<double> w;      // [in, out]
  std::vector<double> scale;  // [out], quantised only
  double input_bound = 0;
};

}  // namespace

std::shared_ptr<Packed> ReferenceBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed>) {
  auto p = std::make_shared<ReferencePacked>();
  p->in = w.dim(transposed ? 1 : 0);
  p->out = w.dim(transposed ? 0 : 1);
  p->w.resize(w.count());
  const double* src = w.data<double>();
  for (int64_t i = 0; i < p->in; ++i)
    for (int64_t o = 0; o < p->out; ++o) p->w[i * p->out + o] = transposed ? src[o * p->in + i] : src[i * p->out + o];
  return p;
}

std::shared_ptr<Packed> ReferenceBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  auto p = std::static_pointer_cast<ReferencePacked>(pack(w, transposed, nullptr));
  p->quantized = true;
  p->input_bound = input_bound;
  for (int64_t o = 0; o < p->out; ++o) {
    double scale = 0;
    for (int64_t i = 0; i < p->in; ++i) scale = std::max(scale, std::abs(p->w[i * p->out + o]));
    for (int64_t i = 0; i < p->in && scale > 0; ++i) p->w[i * p->out + o] = std::nearbyint(127 * p->w[i * p->out + o] / scale);
    p->scale.push_back(scale);
  }
  return p;
}

void ReferenceBackend::linear(const Tensor& x, const Packed& packed, const Tensor& b, const Tensor& y, Activation activation, Write write) {
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

void ReferenceBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  const int64_t P = a.columns(), Q = c.columns();
  for (int64_t i = 0; i < P; ++i)
    for (int64_t j = 0; j < Q; ++j) {
      double sum = 0;
      for (int64_t n = 0; n < a.rows(); ++n) sum += a.data<double>()[n * P + i] * c.data<double>()[n * Q + j];
      double& out = dw.data<double>()[i * Q + j];
      out = write == Write::accumulate ? out + sum : sum;
    }
}

void ReferenceBackend::column_sums(const Tensor& dy, const Tensor& db, Write write) {
  const int64_t Q = dy.columns();
  for (int64_t j = 0; j < Q; ++j) {
    double sum = 0;
    for (int64_t n = 0; n < dy.rows(); ++n) sum += dy.data<double>()[n * Q + j];
    double& out = db.data<double>()[j];
    out = write == Write::accumulate ? out + sum : sum;
  }
}

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace starling
