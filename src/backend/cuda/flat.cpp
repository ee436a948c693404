// Arithmetic of strategies on flat buffers in the card's memory.
#include "backend/flat.h"

#include <algorithm>
#include <numeric>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/flat.h"
#include "backend/cuda/kernels/rows.h"

namespace starling::STARLING_CUDA {
namespace {

class CudaFlatOps final : public FlatOps {
 public:
  explicit CudaFlatOps(CudaDevice& device) : device_(device) {}

  void squares_in_order(const Tensor& x, const Tensor& sum) override { ordered_sum(x, x, at<double>(sum), 0); }

  void rescale(const Tensor& v, const Tensor& scale, const Tensor& y) override {
    require(v, y);
    auto* const squares = scratch<double>(1 + kernels::ordered_parts(v.count()));
    ordered_sum(v, v, squares, 1);
    kernels::rescale({at(v), at(scale), squares, at(y), v.count()}, stream());
  }

  void rescale_backward(const Tensor& dy, const Tensor& v, const Tensor& scale, const Tensor& dv, const Tensor& dscale,
                        Write write) override {
    require(dy, v);
    require(dv, v);
    auto* const sums = scratch<double>(2 + kernels::ordered_parts(v.count()));
    ordered_sum(v, v, sums, 2);
    ordered_sum(dy, v, sums + 1, 2);
    kernels::rescale_backward({at(dy), at(v), at(scale), sums, sums + 1, at(dv), at(dscale), write == Write::accumulate, v.count()},
                              stream());
  }

  void link_loss(const Tensor& p, const Ints& place, const HostDeviceArray<float>& weight, const Tensor& dp, const Tensor& sum) override {
    require(p, dp);
    CHECK(place.size() == weight.size(), "{} links with {} weights", place.size(), weight.size());
    dp.zero();
    if (!place.empty())
      kernels::link_loss({at(p), at<int32_t>(place.there()), at(weight.there()), at(dp), at<double>(sum), std::ssize(place)}, stream());
  }

  void divide(const Tensor& x, double n) override { kernels::divide({at(x), static_cast<float>(n), x.count()}, stream()); }

  void scale(const Tensor& x, double factor, const Tensor& y, Write write) override {
    require(x, y);
    kernels::scale({at(x), static_cast<float>(factor), at(y), write == Write::accumulate, x.count()}, stream());
  }

  void convert(const Tensor& x, const Tensor& y) override {
    CHECK(x.count() == y.count(), "conversion of {} to {}", x.shape().text(), y.shape().text());
    const bool narrows = y.dtype() == DType::bf16;
    const auto wide = kernels::Type::f32, narrow = kernels::Type::bf16;
    const kernels::Elements task{narrows ? at<const void>(x, DType::f32) : at<const void>(x, DType::bf16),
                                 narrows ? at<void>(y, DType::bf16) : at<void>(y, DType::f32), x.count()};
    kernels::convert(narrows ? wide : narrow, narrows ? narrow : wide, task, stream());
  }

  void displacement(const Displacement& d) override {
    require(d.value, d.displacement);
    require(d.merged, d.displacement);
    kernels::displacement(
        {at(d.value), at(d.merged), at(d.step), static_cast<float>(d.momentum), at(d.displacement), at(d.sent), d.value.count()}, stream());
  }

  void outer_step(const OuterStep& o) override {
    require(o.sum, o.value);
    require(o.merged, o.value);
    kernels::outer_step(
        {at(o.sum), at(o.value), at(o.merged), at(o.step), at(o.sent), static_cast<float>(o.rate), static_cast<float>(o.momentum),
         static_cast<float>(o.anchor), static_cast<float>(o.ahead), o.corrected, static_cast<float>(o.keep), o.value.count()},
        stream());
  }

  void compensate(const Tensor& gradient, const Tensor& now, const Tensor& then, double factor) override {
    require(now, gradient);
    require(then, gradient);
    kernels::compensate({at(gradient), at(now), at(then), static_cast<float>(factor), gradient.count()}, stream());
  }

  void collect(const Tensor& x, const Tensor& residual, double decay, const Tensor& velocity, double momentum, const Tensor& y,
               int64_t first, const Tensor& bad) override {
    require(x, y);
    require(residual, y);
    kernels::collect({at(x), at(residual), static_cast<float>(decay), at(velocity), static_cast<float>(momentum), at(y), at<double>(bad),
                      first, x.count()},
                     stream());
  }

  void pack_rows(const Tensor& x, const Ints& row, const Ints& number, int64_t front, const Tensor& y) override {
    const int64_t D = y.columns() - front;
    CHECK(y.rows() == static_cast<int64_t>(number.size()) && x.columns() == D, "{} rows of {} in {}", number.size(), x.shape().text(),
          y.shape().text());
    kernels::pack_rows({at(x), at<int32_t>(row.there()), at<int32_t>(number.there()), at(y), y.rows(), front, D}, stream());
  }

  void add_to_rows(const Tensor& x, std::span<const int32_t> place, const Tensor& y) override {
    CHECK(x.columns() == y.columns() && x.rows() >= static_cast<int64_t>(place.size()), "{} rows of {} to {}", place.size(),
          x.shape().text(), y.shape().text());
    add_grouped(place, at(x), x.columns(), at(y), y, x.columns());
  }

  // The host groups the rows, so it waits until they have arrived.
  void add_rows(const Tensor& y, int64_t front, const Tensor& x) override {
    CHECK(y.columns() == front + x.columns(), "rows of {} to {}", y.shape().text(), x.shape().text());
    std::vector<int32_t> number(static_cast<size_t>(y.rows()));
    if (number.empty()) return;
    auto* const there = scratch<int32_t>(y.rows());
    kernels::row_numbers({at(y), there, y.rows(), y.columns()}, stream());
    device_.memory().download(reinterpret_cast<std::byte*>(number.data()), reinterpret_cast<const std::byte*>(there),
                              y.rows() * static_cast<int64_t>(sizeof(int32_t)));
    add_grouped(number, at(y) + front, y.columns(), at(x), x, x.columns());
  }

 private:
  // Rows of `to` at place[i] += row i of x: grouped by place, in order within a group.
  void add_grouped(std::span<const int32_t> place, const float* x, int64_t x_stride, float* y, const Tensor& to, int64_t columns) {
    std::vector<int32_t> order(place.size()), places, first;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return place[a] < place[b]; });
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t at = place[order[i]];
      CHECK(at >= 0 && at < to.rows(), "row {} of {}", at, to.rows());
      if (i == 0 || at != places.back()) {
        places.push_back(at);
        first.push_back(static_cast<int32_t>(i));
      }
    }
    const auto groups = static_cast<int64_t>(places.size());
    if (groups == 0) return;
    first.push_back(static_cast<int32_t>(order.size()));
    std::vector<int32_t> all = std::move(places);
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), order.begin(), order.end());
    auto* const sent = scratch<int32_t>(static_cast<int64_t>(all.size()));
    device_.memory().upload(reinterpret_cast<std::byte*>(sent), reinterpret_cast<const std::byte*>(all.data()),
                            static_cast<int64_t>(all.size() * sizeof(int32_t)));
    kernels::add_to_rows({x, x_stride, sent, sent + groups, sent + 2 * groups + 1, y, to.columns(), groups, columns}, stream());
  }
  // With working memory behind the first `used` numbers of it.
  void ordered_sum(const Tensor& x, const Tensor& y, double* sum, int64_t used) {
    auto* const parts = scratch<double>(used + kernels::ordered_parts(x.count())) + used;
    kernels::ordered_sum({at(x), at(y), parts, sum, x.count()}, stream());
  }
  static void require(const Tensor& x, const Tensor& y) {
    CHECK(x.count() == y.count(), "{} against {}", x.shape().text(), y.shape().text());
  }
  // The address of a tensor's elements on the card; null for an empty handle.
  template <class T = float>
  T* at(const Tensor& x, DType type = dtype_of<T>()) const {
    CHECK(!x || (&x.memory() == &device_.memory() && x.dtype() == type),
          "a flat op gets a tensor {} of {} in place of one of {} on the card", x.shape().text(), name_of(x.dtype()), name_of(type));
    return reinterpret_cast<T*>(x.raw());
  }
  cudaStream_t stream() const { return device_.stream(); }
  // Working memory of one op.
  template <class T>
  T* scratch(int64_t count) {
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    if (!scratch_ || scratch_->bytes() < bytes) {
      scratch_.reset();
      scratch_ = std::make_unique<Storage>(bytes + bytes / 4, device_.memory());
    }
    return reinterpret_cast<T*>(scratch_->data());
  }

  CudaDevice& device_;
  std::unique_ptr<Storage> scratch_;
};

}  // namespace

std::unique_ptr<FlatOps> make_cuda_flat_ops(CudaDevice& device) { return std::make_unique<CudaFlatOps>(device); }

}  // namespace starling::STARLING_CUDA
