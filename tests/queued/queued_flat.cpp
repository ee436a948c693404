// Flat arithmetic, later: see queued_backend.h.
#include "tests/queued/queued_backend.h"

namespace starling {
namespace {

class QueuedFlatOps : public FlatOps {
 public:
  QueuedFlatOps(FlatOps& inner, QueuedDevice& device) : inner_(inner), device_(device) {}

  void squares_in_order(const Tensor& x, const Tensor& sum) override {
    later([this, x = inner(x), sum = inner(sum)] { inner_.squares_in_order(x, sum); });
  }
  void rescale(const Tensor& v, const Tensor& scale, const Tensor& y) override {
    later([this, v = inner(v), scale = inner(scale), y = inner(y)] { inner_.rescale(v, scale, y); });
  }
  void rescale_backward(const Tensor& dy, const Tensor& v, const Tensor& scale, const Tensor& dv, const Tensor& dscale,
                        Write write) override {
    later([this, dy = inner(dy), v = inner(v), scale = inner(scale), dv = inner(dv), dscale = inner(dscale), write] {
      inner_.rescale_backward(dy, v, scale, dv, dscale, write);
    });
  }
  void link_loss(const Tensor& p, const Ints& place, const HostDeviceArray<float>& weight, const Tensor& dp, const Tensor& sum) override {
    later([this, p = inner(p), place = inner(place), weight = inner(weight), dp = inner(dp), sum = inner(sum)] {
      inner_.link_loss(p, place, weight, dp, sum);
    });
  }
  void divide(const Tensor& x, double n) override {
    later([this, x = inner(x), n] { inner_.divide(x, n); });
  }
  void scale(const Tensor& x, double factor, const Tensor& y, Write write) override {
    later([this, x = inner(x), factor, y = inner(y), write] { inner_.scale(x, factor, y, write); });
  }
  void convert(const Tensor& x, const Tensor& y) override {
    later([this, x = inner(x), y = inner(y)] { inner_.convert(x, y); });
  }
  void displacement(const Displacement& d) override {
    Displacement own = d;
    for (Tensor* t : {&own.value, &own.merged, &own.step, &own.displacement, &own.sent}) *t = inner(*t);
    later([this, own] { inner_.displacement(own); });
  }
  void outer_step(const OuterStep& s) override {
    OuterStep own = s;
    for (Tensor* t : {&own.sum, &own.value, &own.merged, &own.step, &own.sent}) *t = inner(*t);
    later([this, own] { inner_.outer_step(own); });
  }
  void compensate(const Tensor& gradient, const Tensor& now, const Tensor& then, double factor) override {
    later([this, gradient = inner(gradient), now = inner(now), then = inner(then), factor] {
      inner_.compensate(gradient, now, then, factor);
    });
  }
  void collect(const Tensor& x, const Tensor& residual, double decay, const Tensor& velocity, double momentum, const Tensor& y,
               int64_t first, const Tensor& bad) override {
    later([this, x = inner(x), residual = inner(residual), decay, velocity = inner(velocity), momentum, y = inner(y), first,
           bad = inner(bad)] { inner_.collect(x, residual, decay, velocity, momentum, y, first, bad); });
  }
  void pack_rows(const Tensor& x, const Ints& row, const Ints& number, int64_t front, const Tensor& y) override {
    later([this, x = inner(x), row = inner(row), number = inner(number), front, y = inner(y)] {
      inner_.pack_rows(x, row, number, front, y);
    });
  }
  void add_to_rows(const Tensor& x, std::span<const int32_t> place, const Tensor& y) override {
    later([this, x = inner(x), places = std::vector<int32_t>(place.begin(), place.end()), y = inner(y)] {
      inner_.add_to_rows(x, places, y);
    });
  }
  void add_rows(const Tensor& y, int64_t front, const Tensor& x) override {
    later([this, y = inner(y), front, x = inner(x)] { inner_.add_rows(y, front, x); });
  }

 private:
  template <class T>
  T inner(const T& x) const {
    return device_.inner(x);
  }
  void later(std::function<void()> body) { device_.queue.push(std::move(body)); }

  FlatOps& inner_;
  QueuedDevice& device_;
};

}  // namespace

std::unique_ptr<FlatOps> make_queued_flat_ops(FlatOps& inner, QueuedDevice& device) {
  return std::make_unique<QueuedFlatOps>(inner, device);
}

}  // namespace starling
