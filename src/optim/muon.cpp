#include "optim/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace starling {
namespace {

// Each polynomial is the one of its kind that brings the interval left by those before it nearest to 1 (the greedy choice of Amsel et al.
// 2025, "Polar Express"), beginning with 0.015 to 1. Beyond its interval each of them grows steeply, and bf16 rounds; therefore singular
// values begin below 1 by kMargin, and all polynomials but the first are stretched by 1.02.
constexpr NewtonSchulz kSteps[] = {
    {7.8977, -22.8490, 16.8329}, {3.3400, -2.4067, 0.4687}, {2.3586, -1.6717, 0.3952}, {1.8801, -1.2328, 0.3538}};
constexpr double kMargin = 1.05;
constexpr double kRootMeanSquare = 0.2;  // of a step's elements, as Adam's

// The sum of the squares of x; 1 where nothing is computed.
double sum_of_squares(Backend& backend, const Tensor& x, const Tensor& sum) {
  double squares = 1;
  sum.zero();
  backend.sum_of_squares(x, sum);
  if (sum.has_elements()) sum.read<double>({&squares, 1});
  return squares;
}

enum Place : size_t { squares, gram, gram_squared, polynomial, narrow_x, narrow_gram, narrow_polynomial, other, block, places };

}  // namespace

std::span<const NewtonSchulz> newton_schulz() { return kSteps; }

Tensor Muon::scratch(size_t which, Shape shape, DType type) {
  scratch_.resize(places);
  Tensor& kept = scratch_[which];
  if (!kept || kept.count() < shape.count()) kept = Tensor({shape.count()}, type, backend_.memory());
  return kept.slice(0, shape);
}

Tensor Muon::operand(const Tensor& x, size_t which) {
  if (x.dtype() == backend_.activation()) return x;
  const Tensor narrow = scratch(which, x.shape(), backend_.activation());
  backend_.flat().convert(x, narrow);
  return narrow;
}

void Muon::orthogonalize(const Tensor& x) {
  FlatOps& flat = backend_.flat();
  const int64_t n = x.rows(), m = x.columns(), smaller = std::min(n, m);
  const Tensor sum = scratch(squares, {1}, DType::f64);
  const double norm = std::sqrt(sum_of_squares(backend_, x, sum));
  if (norm == 0) return;
  flat.scale(x, 1 / norm, x, Write::overwrite);
  const Tensor a = scratch(gram, {smaller, smaller}, x.dtype()), aa = scratch(gram_squared, {smaller, smaller}, x.dtype()),
               p = scratch(polynomial, {smaller, smaller}, x.dtype());
  Tensor from = x, to = scratch(other, x.shape(), x.dtype());
  double largest = 0;  // singular value of `from`, at most; 0: not known yet
  for (NewtonSchulz step : kSteps) {
    const Tensor rows = operand(from, narrow_x);
    if (n >= m) {  // a = x^T x, or x x^T where that is smaller
      backend_.weight_gradient(rows, rows, a, Write::overwrite);
    } else {
      packed_[0] = backend_.pack(from, true, packed_[0]);
      backend_.linear(rows, *packed_[0], {}, a, Activation::none, Write::overwrite);
    }
    if (largest == 0) {
      // a has the squares of the singular values of x: the fourth root of the sum of their squares is a bound that costs no product.
      largest = kMargin * std::pow(sum_of_squares(backend_, a, sum), 0.25);
      step.a /= largest;
      step.b /= std::pow(largest, 3);
      step.c /= std::pow(largest, 5);
    }
    const Tensor symmetric = operand(a, narrow_gram);
    backend_.weight_gradient(symmetric, symmetric, aa, Write::overwrite);
    flat.scale(a, step.b, p, Write::overwrite);
    flat.scale(aa, step.c, p, Write::accumulate);
    // x = a x + x p, or a x + p x.
    packed_[1] = backend_.pack(n >= m ? p : from, false, packed_[1]);
    flat.scale(from, step.a, to, Write::overwrite);
    backend_.linear(n >= m ? rows : operand(p, narrow_polynomial), *packed_[1], {}, to, Activation::none, Write::accumulate);
    std::swap(from, to);
  }
  if (std::size(kSteps) % 2 == 1) x.copy_from(from);  // it ended in the other one
}

void Muon::update(const MatrixPlace& place, const Tensor& value, const Tensor& gradient, const Tensor& momentum, const MuonStep& step) {
  FlatOps& flat = backend_.flat();
  const double own = 1 - step.momentum;
  flat.scale(momentum, step.momentum, momentum, Write::overwrite);
  flat.scale(gradient, own * step.scale, momentum, Write::accumulate);
  flat.scale(gradient, own * step.scale, gradient, Write::overwrite);
  flat.scale(momentum, step.momentum, gradient, Write::accumulate);
  if (place.blocks == 1) {
    orthogonalize(gradient);
  } else {
    const Tensor x = scratch(block, {place.rows, place.width()}, gradient.dtype());
    for (int64_t column = 0; column < place.columns; column += place.width()) {
      backend_.copy_columns(gradient, column, x, 0, place.width(), Write::overwrite);
      orthogonalize(x);
      backend_.copy_columns(x, 0, gradient, column, place.width(), Write::overwrite);
    }
  }
  flat.scale(value, 1 - step.rate * step.weight_decay, value, Write::overwrite);
  const double longer = static_cast<double>(std::max(place.rows, place.width()));
  flat.scale(gradient, -step.rate * kRootMeanSquare * std::sqrt(longer), value, Write::accumulate);
}

double Muon::flops(const MatrixPlace& place) {
  const double m = static_cast<double>(std::min(place.rows, place.width())), n = static_cast<double>(std::max(place.rows, place.width()));
  return static_cast<double>(place.blocks) * static_cast<double>(std::size(kSteps)) * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace starling
