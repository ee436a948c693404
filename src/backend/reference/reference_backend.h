// The class of the reference backend; its ops are in the .cpp files beside it, by what they are about, their contracts in
// backend/backend.h.
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

  // reference.cpp: matrix products
  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) override;
  void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation, Write) override;
  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double input_bound) override;
  void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write) override;
  void column_sums(const Tensor& dy, const Tensor& db, Write) override;

  // rows.cpp: embeddings, and what goes row by row or element by element
  void embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout&, const Tensor& y) override;
  void embed_backward(const Ints& tokens, double scale, const Dropout&, const Tensor& dy, const Tensor& dtable) override;
  void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y, const Tensor& statistics) override;
  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                           Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) override;
  void add_dropout(const Tensor& x, const Tensor& s, const Dropout&, const Tensor& y) override;
  void dropout_backward(const Tensor& dy, const Dropout&, const Tensor& ds, Write) override;
  void relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh) override;
  void add(const Tensor& x, const Tensor& y) override;
  void gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write) override;
  void copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write) override;
  void clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) override;
  void clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write) override;

  // recurrent.cpp
  void lstm_step(const LstmStep&) override;
  void lstm_step_backward(const LstmStepBackward&) override;
  void global_attention(const GlobalAttention&, const AttentionLayout&, const Tensor& y, const Tensor& weights) override;
  void global_attention_backward(const GlobalAttention&, const AttentionLayout&, const Tensor& weights, const Tensor& dy, const Tensor& dq,
                                 const Tensor& dk, const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) override;

  // attention.cpp
  void attention(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& y, const Tensor& lse) override;
  void attention_backward(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& lse, const Tensor& dy,
                          const Tensor& dq, const Tensor& dkv) override;
  void attend_cached(const Tensor& q, int64_t q_column, const Tensor& kv, int64_t k_column, int64_t v_column, const Ints& index,
                     const Ints& offsets, int64_t heads, const Tensor& y, const Tensor& weights) override;

  // output.cpp
  void smoothed_loss(const Tensor& logits, const LossRows&, const Tensor& row_loss, const Tensor& dlogits) override;
  void loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) override;
  void log_softmax_top_k(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices) override;
  void sample(const Tensor& logits, const Placed<double>& uniform, const Tensor& tokens) override;

  // optimizer_steps.cpp
  void sum_of_squares(const Tensor& x, const Tensor& sum) override;
  void adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep&) override;
  void adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep&) override;
  void sgd(const Tensor& value, const Tensor& gradient, const SgdStep&) override;
  void moving_average(const Tensor& value, const Tensor& average, double decay) override;

  // compression.cpp
  void compress(const Compression&) override;
  void decompress(const CodeLayout&, const Tensor& codes, double scale, const Tensor& sum) override;

 private:
  static double& at(const Tensor& t, int64_t row, int64_t column) { return t.data<double>()[row * t.columns() + column]; }
  // The factor of an element: 0 where it is dropped.
  static double keep(const Dropout& d, int64_t row, int64_t column) {
    if (!d.active()) return 1;
    const uint32_t bits = dropout_bits(d.key, d.rows.sentence[row], d.rows.position[row], column);
    return bits < d.threshold() ? 0 : static_cast<double>(d.scale());
  }
  static void clear(const Tensor& t, int64_t column, int64_t D);
  static std::vector<double> probabilities(const AttentionInput&, const AttentionLayout&, size_t b, int64_t h, int64_t i, int64_t dh,
                                           const Tensor& lse, bool store);
  std::unique_ptr<FlatOps> flat_ = make_host_flat_ops(1);
};

}  // namespace starling
