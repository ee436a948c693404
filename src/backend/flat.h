// The arithmetic of strategies on flat buffers and on rows of gradients: merges, outer steps, residuals, divisions, rows on the wire. All
// tensors of a call have parameter type and lie in the backend's memory. Works element by element without fused multiply-adds, so results
// depend neither on threads nor on instruction sets.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/host_device_array.h"

namespace starling {

constexpr float kLeastLinked = 1e-30f;  // the least probability of link_loss

enum class Write : bool { overwrite, accumulate };

// How far a replica's value is from where its block began, merged + momentum * step: for periodic merging (strategies/periodic.cpp).
struct Displacement {
  Tensor value, merged, step;  // step may be empty
  double momentum = 0;         // 0: blocks begin at the merged model itself
  Tensor displacement;         // out
  Tensor sent;                 // out: a copy of value; may be empty
};

// The outer step of a merge. With move = rate * sum, or, if there is a step, step = momentum * step + move in its place:
//   merged += move, then += anchor * move;  start = merged + ahead * move
// The replica continues from start or, if it has moved on since it sent, from start + (value - sent), or from the mixture keep * value + (1
// - keep) * start.
struct OuterStep {
  Tensor sum;            // of the displacements, over the ranks
  Tensor value, merged;  // in and out
  Tensor step;           // in and out; may be empty
  Tensor sent;           // may be empty: value becomes start
  double rate = 1, momentum = 0, anchor = 0, ahead = 0;
  bool corrected = false;  // with sent: the first of the two
  double keep = 0;
};

class FlatOps {
 public:
  virtual ~FlatOps() = default;
  // sum, f64 [1] = the sum of x^2 in double: each 4,096 elements are summed in order, then these sums. So it is the same number on ranks
  // whose threads, instruction sets and devices differ.
  virtual void squares_in_order(const Tensor& x, const Tensor& sum) = 0;
  // y = scale * v / |v|, scale [1]: normalised vectors (Salimans and Kingma 2016). In double, whatever the type.
  virtual void rescale(const Tensor& v, const Tensor& scale, const Tensor& y) = 0;
  // Its gradients, written or added.
  virtual void rescale_backward(const Tensor& dy, const Tensor& v, const Tensor& scale, const Tensor& dv, const Tensor& dscale, Write) = 0;
  // x /= n.
  virtual void divide(const Tensor& x, double n) = 0;
  // y = factor * x, or y += factor * x; y may be x.
  virtual void scale(const Tensor& x, double factor, const Tensor& y, Write) = 0;
  // y = x, one of them f32 and the other bf16 (rounded to nearest even).
  virtual void convert(const Tensor& x, const Tensor& y) = 0;
  virtual void displacement(const Displacement&) = 0;
  virtual void outer_step(const OuterStep&) = 0;
  // gradient += factor * gradient^2 * (now - then): delay compensation (Zheng et al. 2017).
  virtual void compensate(const Tensor& gradient, const Tensor& now, const Tensor& then, double factor) = 0;
  // y = decay * residual + x or, with a velocity, decay * residual + (momentum * velocity + x); residual and velocity become zero. bad, f64
  // [1]: first + 1 + the index of an element of y that is not finite, if there is one.
  virtual void collect(const Tensor& x, const Tensor& residual, double decay, const Tensor& velocity, double momentum, const Tensor& y,
                       int64_t first, const Tensor& bad) = 0;

  // The cross-entropy of probabilities along links, guided attention: sum, f64 [1] += the sum over links l of -weight[l] ln p[place[l]],
  // and dp becomes its gradient, zero where there is no link. Places are distinct. A probability below 1e-30 counts as that. The order of
  // the sum, which is for reports, is the device's.
  virtual void link_loss(const Tensor& p, const Ints& place, const HostDeviceArray<float>& weight, const Tensor& dp, const Tensor& sum) = 0;

  // Rows on the wire, y [n, front + D]: the row's number in the first of the `front` elements, if there are any, then its D values (numbers
  // are exact up to 2^24 in f32). y[i] = (number[i], x[row[i]]), or x[i] if row is empty.
  virtual void pack_rows(const Tensor& x, const Ints& row, const Ints& number, int64_t front, const Tensor& y) = 0;
  // y[place[i]] += x[i], in order; the host plans with the places.
  virtual void add_to_rows(const Tensor& x, std::span<const int32_t> place, const Tensor& y) = 0;
  // x[number of y[i]] += the values of y[i], in order.
  virtual void add_rows(const Tensor& y, int64_t front, const Tensor& x) = 0;
};

// For tensors in the host's memory, f32 or f64.
std::unique_ptr<FlatOps> make_host_flat_ops(int threads);

}  // namespace starling
