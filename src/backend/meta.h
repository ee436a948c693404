// A backend that computes nothing and keeps nothing: its ops do nothing, and its tensors have no elements. With it, the code that trains is
// only timed, at sizes that would not fit in memory; inside a ProfiledBackend its products are counted.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace starling {

class MetaBackend : public Backend {
 public:
  MetaBackend(DType activation, DType parameter) : activation_(activation), parameter_(parameter) {}

  std::string describe() const override { return "idle: nothing is computed"; }
  DType activation() const override { return activation_; }
  DType parameter() const override { return parameter_; }
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<MetaBackend>(activation_, parameter_); }
  Memory& memory() const override { return meta_memory(); }
  FlatOps& flat() override;

  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) override;
  void linear(const Tensor&, const Packed&, const Tensor&, const Tensor&, Activation, Write) override {}
  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double) override { return pack(w, transposed, nullptr); }
  void weight_gradient(const Tensor&, const Tensor&, const Tensor&, Write) override {}
  void column_sums(const Tensor&, const Tensor&, Write) override {}
  void embed(const Ints&, const Ints&, const Tensor&, double, const Dropout&, const Tensor&) override {}
  void embed_backward(const Ints&, double, const Dropout&, const Tensor&, const Tensor&) override {}
  void layer_norm(const Tensor&, const Tensor&, const Tensor&, double, const Tensor&, const Tensor&) override {}
  void layer_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Write, const Tensor&, const Tensor&,
                           Write) override {}
  void add_dropout(const Tensor&, const Tensor&, const Dropout&, const Tensor&) override {}
  void dropout_backward(const Tensor&, const Dropout&, const Tensor&, Write) override {}
  void relu_dropout_backward(const Tensor&, double, const Tensor&) override {}
  void activate(const Tensor&, Activation, const Tensor&) override {}
  void activate_backward(const Tensor&, Activation, const Tensor&) override {}
  void add(const Tensor&, const Tensor&) override {}
  void gather_rows(const Tensor&, const Ints&, const Tensor&, Write) override {}
  void scatter_rows(const Tensor&, int64_t, const Ints&, const Tensor&) override {}
  void copy_columns(const Tensor&, int64_t, const Tensor&, int64_t, int64_t, Write) override {}
  void clamp(const Tensor&, double, const Tensor&, const Tensor&) override {}
  void clamp_backward(const Tensor&, double, const Tensor&, const Tensor&, Write) override {}
  void lstm_step(const LstmStep&) override {}
  void lstm_step_backward(const LstmStepBackward&) override {}
  void ssru(const Ssru&) override {}
  void ssru_backward(const SsruBackward&) override {}
  void attention(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor&, const Tensor&) override {}
  void attention_backward(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor&, const Tensor&, const Tensor&,
                          const Tensor&) override {}
  void attend_cached(const AttentionInput&, const Ints&, const Ints&, int64_t, const Tensor&, const Tensor&) override {}
  void global_attention(const GlobalAttention&, const AttentionLayout&, const Tensor&, const Tensor&) override {}
  void global_attention_backward(const GlobalAttention&, const AttentionLayout&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                 const Tensor&, const Tensor&, Write, const Tensor&, Write) override {}
  void smoothed_loss(const Tensor&, const LossRows&, const Tensor&, const Tensor&) override {}
  void shard_exponentials(const LogitsShard&, const LossRows&) override {}
  void rescale_shard(const LogitsShard&, const Tensor&) override {}
  void shard_loss(const LogitsShard&, const Tensor&, const LossRows&, const Tensor&, const Tensor&) override {}
  void loss_sums(const Tensor&, const LossRows&, const Tensor&) override {}
  void top_logits(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&) override {}
  void linear_top_logits(const Tensor&, const Packed&, const Tensor&, double, int64_t, const Tensor&, const Tensor&,
                         const Tensor&) override {}
  void sample(const Tensor&, const HostDeviceArray<double>&, const Tensor&) override {}
  void sum_of_squares(const Tensor&, const Tensor&) override {}
  void adam(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const AdamStep&) override {}
  void adagrad(const Tensor&, const Tensor&, const Tensor&, const AdagradStep&) override {}
  void sgd(const Tensor&, const Tensor&, const SgdStep&) override {}
  void moving_average(const Tensor&, const Tensor&, double) override {}
  void compress(const Compression&) override {}
  void decompress(const CodeLayout&, const Tensor&, double, const Tensor&) override {}

 private:
  DType activation_, parameter_;
};

}  // namespace starling
