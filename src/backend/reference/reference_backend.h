// The class of the reference backend. Its ops are in the .cpp files beside it, by topic, their contracts in backend/backend.h.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/dropout.h"
#include "backend/numbers.h"

namespace starling {

class ReferenceBackend final : public Backend {
 public:
  std::string describe() const override { return "reference (f64, naive)"; }
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<ReferenceBackend>(); }
  DType activation() const override { return DType::f64; }
  DType parameter() const override { return DType::f64; }
  FlatOps& flat() override { return *flat_; }

#include "backend/ops.inc"  // the files of this folder

 private:
  static double& at(const Tensor& t, int64_t row, int64_t column) { return t.data<double>()[row * t.columns() + column]; }
  // The dropout factor of an element: 0 if it is dropped.
  static double keep(const Dropout& d, int64_t row, int64_t column) {
    if (!d.active()) return 1;
    const uint32_t bits = dropout_bits(d.key, d.rows.sentence[row], d.rows.position[row], d.first_column + column);
    return bits < d.threshold() ? 0 : static_cast<double>(d.scale());
  }
  static void clear(const Tensor& t, int64_t column, int64_t D);
  // What a relative position adds to a score; 0 without them.
  static double relative_score(const RelativeBins& r, int64_t row, int64_t head, int64_t ahead);
  static std::vector<double> probabilities(const AttentionInput&, const AttentionLayout&, size_t b, int64_t h, int64_t i, int64_t dh,
                                           const Tensor& lse, bool store);
  std::unique_ptr<FlatOps> flat_ = make_host_flat_ops(1);
};

}  // namespace starling
