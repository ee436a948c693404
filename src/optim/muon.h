// Muon (Jordan et al. 2024): the momentum of a weight matrix, with all its singular values made about 1 by a Newton-Schulz iteration, is
// the step. Weights are [in, out]. Built of the backend's products, so every backend has it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace starling {

// A weight matrix in a flat buffer: `blocks` matrices of equal shape side by side (queries, keys and values; gates), each of which gets a
// step of its own.
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

  // value, gradient, momentum: [rows, columns] parameter type, contiguous. momentum = m momentum + (1 - m) g, u = m momentum + (1 - m) g
  // (Nesterov); value -= rate (weight_decay value + 0.2 sqrt(max(rows, width)) orthogonal(u)), block by block: the elements of the step
  // have the root mean square of Adam's, whose rates and decay it takes over (Liu et al. 2025). The gradient is overwritten.
  void update(const MatrixPlace& place, const Tensor& value, const Tensor& gradient, const Tensor& momentum, const MuonStep& step);

  // x [n, m], parameter type, becomes a matrix of the same singular vectors with singular values of 0.99 to 1.01, where they were at least
  // 0.016 times the fourth root of the sum of their fourth powers, a bound of the largest; smaller ones become less, and zeros stay zeros.
  // Waits for the norms.
  void orthogonalize(const Tensor& x);

  // Of the products of a step.
  static double flops(const MatrixPlace& place);

 private:
  // A tensor of that shape in memory that is kept.
  Tensor scratch(size_t which, Shape shape, DType type);
  // x as products take it.
  Tensor operand(const Tensor& x, size_t which);

  Backend& backend_;
  std::vector<Tensor> scratch_;
  std::shared_ptr<Packed> packed_[2];
};

// The polynomials a x + b x^3 + c x^5 that singular values go through, one after the other.
struct NewtonSchulz {
  double a, b, c;
};
std::span<const NewtonSchulz> newton_schulz();

}  // namespace starling
