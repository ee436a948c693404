// Muon (Jordan et al. 2024): the step of a weight matrix is its momentum, with all singular values made about 1 by a Newton-Schulz
// iteration. Weights are [in, out]. It is built of the backend's products, so every backend has it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace starling {

// A weight matrix in a flat buffer: `blocks` matrices of equal shape side by side (queries, keys and values; gates), each of which gets its
// own step.
struct MatrixPlace {
  int64_t offset = 0, rows = 0, columns = 0, blocks = 1;
  int64_t count() const { return rows * columns; }
  int64_t width() const { return columns / blocks; }
};

struct MuonStep {
  double rate, weight_decay;  // decoupled
  double momentum;
  double scale;  // the gradient is multiplied by this first
};

class Muon {
 public:
  explicit Muon(Backend& backend) : backend_(backend) {}

  // value, gradient, momentum: [rows, columns], parameter type, contiguous. Block by block: momentum = m momentum + (1 - m) g; u = m
  // momentum + (1 - m) g (Nesterov); value -= rate (weight_decay value + 0.2 sqrt(max(rows, width)) orthogonal(u)). The elements of the
  // step have the root mean square of Adam's, so that Adam's rates and decay apply unchanged (Liu et al. 2025). Overwrites the gradient.
  void update(const MatrixPlace& place, const Tensor& value, const Tensor& gradient, const Tensor& momentum, const MuonStep& step);

  // Replaces x [n, m], parameter type, by a matrix with the same singular vectors and with singular values of 0.99 to 1.01, where they were
  // at least 0.016 times the fourth root of the sum of their fourth powers, which is a bound of the largest. Smaller ones come out smaller,
  // and zeros stay zero. Waits for the norms.
  void orthogonalize(const Tensor& x);

  // Operations of a step's matrix products.
  static double flops(const MatrixPlace& place);

 private:
  // A tensor of that shape in working memory that is kept.
  Tensor scratch(size_t which, Shape shape, DType type);
  // x in the type that products take.
  Tensor operand(const Tensor& x, size_t which);

  Backend& backend_;
  std::vector<Tensor> scratch_;
  std::shared_ptr<Packed> packed_[2];
};

// The polynomials a x + b x^3 + c x^5 that are applied to the singular values, one after another.
struct NewtonSchulz {
  double a, b, c;
};
std::span<const NewtonSchulz> newton_schulz();

}  // namespace starling
