// Compiled without contraction of products and sums (cmake/kernels.cmake), and for the oldest instruction set alone: these loops wait for
// memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/flat.h"
#include "backend/numbers.h"

namespace starling {
namespace {

constexpr int64_t kFew = 16384;      // elements that are not worth a second thread
constexpr int64_t kSumPiece = 4096;  // elements that are added up one after the other

template <class F>
void by_type(DType type, F f) {
  if (type == DType::f64) return f(double{});
  CHECK(type == DType::f32, "flat buffers are {}", name_of(type));
  f(float{});
}

template <class T>
T* elements(const Tensor& t) {
  return t ? t.data<T>() : nullptr;
}

class HostFlatOps : public FlatOps {
 public:
  explicit HostFlatOps(int threads) : threads_(threads) {}

  void squares_in_order(const Tensor& x, const Tensor& sum) override {
    by_type(x.dtype(), [&]<class T>(T) { sum.data<double>()[0] = dot(x.data<T>(), x.data<T>(), x.count()); });
  }

  void link_loss(const Tensor& p, const Ints& place, const HostDeviceArray<float>& weight, const Tensor& dp, const Tensor& sum) override {
    require(p, dp);
    CHECK(place.size() == weight.size(), "{} links with {} weights", place.size(), weight.size());
    by_type(p.dtype(), [&]<class T>(T) {
      const T* const from = p.data<T>();
      T* const to = dp.data<T>();
      std::memset(to, 0, static_cast<size_t>(dp.bytes()));
      double loss = 0;
      for (size_t l = 0; l < place.size(); ++l) {
        const T probability = std::max(from[place[l]], static_cast<T>(kLeastLinked)), w = static_cast<T>(weight[l]);
        loss -= static_cast<double>(w) * std::log(static_cast<double>(probability));
        to[place[l]] = -w / probability;
      }
      sum.data<double>()[0] += loss;
    });
  }

  void divide(const Tensor& x, double n) override {
    by_type(x.dtype(), [&]<class T>(T) {
      T* const p = x.data<T>();
      const T divisor = static_cast<T>(n);
      each(x.count(), [=](int64_t i) { p[i] /= divisor; });
    });
  }

  void scale(const Tensor& x, double factor, const Tensor& y, Write write) override {
    require(x, y);
    by_type(x.dtype(), [&]<class T>(T) {
      const T* const from = x.data<T>();
      T* const to = y.data<T>();
      const T f = static_cast<T>(factor);
      if (write == Write::accumulate)
        each(x.count(), [=](int64_t i) { to[i] += f * from[i]; });
      else
        each(x.count(), [=](int64_t i) { to[i] = f * from[i]; });
    });
  }

  void convert(const Tensor& x, const Tensor& y) override {
    CHECK(x.count() == y.count(), "conversion of {} to {}", x.shape().text(), y.shape().text());
    if (y.dtype() == DType::bf16) {
      const float* const from = x.data<float>();
      bf16* const to = y.data<bf16>();
      each(x.count(), [=](int64_t i) { to[i] = round_to_bf16(from[i]); });
    } else {
      const bf16* const from = x.data<bf16>();
      float* const to = y.data<float>();
      each(x.count(), [=](int64_t i) { to[i] = widen(from[i]); });
    }
  }

  void displacement(const Displacement& d) override {
    require(d.value, d.displacement);
    require(d.merged, d.displacement);
    by_type(d.value.dtype(), [&]<class T>(T) {
      const T *const value = d.value.data<T>(), *const merged = d.merged.data<T>(), *const step = elements<T>(d.step);
      T* const out = d.displacement.data<T>();
      const T momentum = static_cast<T>(d.momentum);
      if (step && d.momentum != 0)
        each(d.value.count(), [=](int64_t i) { out[i] = value[i] - (merged[i] + momentum * step[i]); });
      else
        each(d.value.count(), [=](int64_t i) { out[i] = value[i] - merged[i]; });
    });
    if (d.sent) d.sent.copy_from(d.value);
  }

  void outer_step(const OuterStep& o) override {
    require(o.sum, o.value);
    require(o.merged, o.value);
    by_type(o.value.dtype(), [&]<class T>(T) {
      if (o.step)
        outer_step<T, true>(o);
      else
        outer_step<T, false>(o);
    });
  }

  void compensate(const Tensor& gradient, const Tensor& now, const Tensor& then, double factor) override {
    require(now, gradient);
    require(then, gradient);
    by_type(gradient.dtype(), [&]<class T>(T) {
      T* const g = gradient.data<T>();
      const T *const a = now.data<T>(), *const b = then.data<T>(), f = static_cast<T>(factor);
      each(gradient.count(), [=](int64_t i) { g[i] += f * g[i] * g[i] * (a[i] - b[i]); });
    });
  }

  void collect(const Tensor& x, const Tensor& residual, double decay, const Tensor& velocity, double momentum, const Tensor& y,
               int64_t first, const Tensor& at) override {
    require(x, y);
    require(residual, y);
    int64_t bad = -1;
    by_type(x.dtype(), [&]<class T>(T) {
      const T* const from = x.data<T>();
      T *const rest = residual.data<T>(), *const speed = elements<T>(velocity), *const to = y.data<T>();
      const T d = static_cast<T>(decay), m = static_cast<T>(momentum);
      const int64_t n = x.count();
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(max : bad) if (n > kFew)
      for (int64_t i = 0; i < n; ++i) {
        to[i] = d * rest[i] + (speed ? m * speed[i] + from[i] : from[i]);
        if (!std::isfinite(to[i])) bad = i;
        rest[i] = 0;
        if (speed) speed[i] = 0;
      }
    });
    if (bad >= 0) note_bad(at, first + bad);
  }

  void rescale(const Tensor& v, const Tensor& scale, const Tensor& y) override {
    require(v, y);
    by_type(v.dtype(), [&]<class T>(T) {
      const T* const from = v.data<T>();
      const double factor = static_cast<double>(scale.data<T>()[0]) / length(from, v.count());
      for (int64_t i = 0; i < v.count(); ++i) y.data<T>()[i] = static_cast<T>(static_cast<double>(from[i]) * factor);
    });
  }

  void rescale_backward(const Tensor& dy, const Tensor& v, const Tensor& scale, const Tensor& dv, const Tensor& dscale,
                        Write write) override {
    require(dy, v);
    require(dv, v);
    by_type(v.dtype(), [&]<class T>(T) {
      const T *const d = dy.data<T>(), *const x = v.data<T>();
      const double along = dot(d, x, v.count());
      const double norm = length(x, v.count()), s = static_cast<double>(scale.data<T>()[0]);
      const auto put = [&](T& to, double g) { to = static_cast<T>((write == Write::accumulate ? static_cast<double>(to) : 0) + g); };
      for (int64_t i = 0; i < v.count(); ++i)
        put(dv.data<T>()[i], s / norm * (static_cast<double>(d[i]) - static_cast<double>(x[i]) * along / (norm * norm)));
      put(dscale.data<T>()[0], along / norm);
    });
  }

  void pack_rows(const Tensor& x, const Ints& row, const Ints& number, int64_t front, const Tensor& y) override {
    const int64_t width = y.columns(), D = width - front;
    CHECK(y.rows() == static_cast<int64_t>(number.size()) && x.columns() == D, "{} rows of {} in {}", number.size(), x.shape().text(),
          y.shape().text());
    by_type(y.dtype(), [&]<class T>(T) {
      for (size_t i = 0; i < number.size(); ++i) {
        T* const to = y.data<T>() + static_cast<int64_t>(i) * width;
        std::memset(to, 0, static_cast<size_t>(front) * sizeof(T));
        if (front > 0) to[0] = static_cast<T>(number[i]);
        std::memcpy(to + front, x.data<T>() + (row.empty() ? static_cast<int64_t>(i) : row[i]) * D, static_cast<size_t>(D) * sizeof(T));
      }
    });
  }

  void add_to_rows(const Tensor& x, std::span<const int32_t> place, const Tensor& y) override {
    by_type(y.dtype(), [&]<class T>(T) {
      for (size_t i = 0; i < place.size(); ++i) add_row(x.data<T>() + static_cast<int64_t>(i) * x.columns(), place[i], y);
    });
  }

  void add_rows(const Tensor& y, int64_t front, const Tensor& x) override {
    by_type(y.dtype(), [&]<class T>(T) {
      for (int64_t i = 0; i < y.rows(); ++i) {
        const T* const from = y.data<T>() + i * y.columns();
        add_row(from + front, static_cast<int64_t>(from[0]), x);
      }
    });
  }

 private:
  // Of v; not zero.
  template <class T>
  double length(const T* v, int64_t n) const {
    return std::sqrt(std::max(dot(v, v, n), 1e-30));
  }
  // In pieces, as squares_in_order.
  template <class T>
  double dot(const T* x, const T* y, int64_t n) const {
    const int64_t pieces = (n + kSumPiece - 1) / kSumPiece;
    std::vector<double> sums(static_cast<size_t>(pieces));
#pragma omp parallel for schedule(static) num_threads(threads_) if (n > kFew)
    for (int64_t p = 0; p < pieces; ++p) {
      double sum = 0;
      for (int64_t i = p * kSumPiece; i < std::min((p + 1) * kSumPiece, n); ++i)
        sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
      sums[static_cast<size_t>(p)] = sum;
    }
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }
  static void require(const Tensor& x, const Tensor& y) {
    CHECK(x.dtype() == y.dtype() && x.count() == y.count(), "{} {} against {} {}", name_of(x.dtype()), x.shape().text(), name_of(y.dtype()),
          y.shape().text());
  }

  // y[row] += values.
  template <class T>
  static void add_row(const T* values, int64_t row, const Tensor& y) {
    CHECK(row >= 0 && row < y.rows(), "row {} of {}", row, y.rows());
    T* const to = y.data<T>() + row * y.columns();
    for (int64_t i = 0; i < y.columns(); ++i) to[i] += values[i];
  }

  // One loop for each form, so that none branches.
  template <class T, bool kStep>
  void outer_step(const OuterStep& o) const {
    const T* const sum = o.sum.data<T>();
    T *const value = o.value.data<T>(), *const merged = o.merged.data<T>(), *const step = elements<T>(o.step);
    const T *const sent = elements<T>(o.sent), rate = static_cast<T>(o.rate), momentum = static_cast<T>(o.momentum);
    const T anchor = static_cast<T>(o.anchor), ahead = static_cast<T>(o.ahead), keep = static_cast<T>(o.keep);
    const auto merge = [=](int64_t i) {  // returns where the replica would start
      T move = rate * sum[i];
      if constexpr (kStep) move = step[i] = momentum * step[i] + move;
      const T now = merged[i] + move, anchored = anchor != 0 ? now + anchor * move : now;
      merged[i] = anchored;
      return ahead != 0 ? anchored + ahead * move : anchored;
    };
    const int64_t n = o.value.count();
    if (!sent)
      each(n, [=](int64_t i) { value[i] = merge(i); });
    else if (o.corrected)
      each(n, [=](int64_t i) { value[i] = merge(i) + (value[i] - sent[i]); });
    else
      each(n, [=](int64_t i) { value[i] = keep * value[i] + (1 - keep) * merge(i); });
  }

  template <class F>
  void each(int64_t n, F f) const {
#pragma omp parallel for simd schedule(static) num_threads(threads_) if (n > kFew)
    for (int64_t i = 0; i < n; ++i) f(i);
  }

  int threads_;
};

}  // namespace

std::unique_ptr<FlatOps> make_host_flat_ops(int threads) { return std::make_unique<HostFlatOps>(threads); }

}  // namespace starling
