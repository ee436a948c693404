// A backend whose ops run later, on another thread, in a memory that is not the host's: a decorator that lets any backend look like a
// device's. Of placed numbers its ops read the copies in its memory, never the host's.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "tests/queued/queue.h"

namespace starling {

// One queue and its memory, shared by a backend and its siblings.
struct QueuedDevice {
  WorkQueue queue;
  QueuedMemory memory{queue};

  // Until `body` has run behind everything else.
  void now(std::function<void()> body) { queue.push(std::move(body)), queue.wait(); }
  // The same elements as a tensor of the host's, for the op itself. Refuses tensors of other memories.
  Tensor inner(const Tensor& x) const;
  // The copies of numbers, which somebody must have placed.
  template <class T>
  Placed<T> inner(const Placed<T>& x) const {
    CHECK(x.empty() || x.there(), "an op gets {} numbers that nobody has placed", x.size());
    return x.empty() ? Placed<T>() : Placed<T>::lent({reinterpret_cast<const T*>(inner(x.there()).raw()), x.size()});
  }
  Dropout inner(Dropout d) const;
  AttentionLayout inner(const AttentionLayout& l) const { return {inner(l.query), inner(l.key), l.heads, l.causal}; }
  LossRows inner(const LossRows& r) const { return {inner(r.targets), r.smoothing, r.logit_bound, inner(r.weights)}; }
};

class QueuedBackend : public Backend {
 public:
  explicit QueuedBackend(std::unique_ptr<Backend> inner, std::shared_ptr<QueuedDevice> device = std::make_shared<QueuedDevice>());
  ~QueuedBackend() override;

  std::string describe() const override { return inner_->describe(); }
  DType activation() const override { return inner_->activation(); }
  DType parameter() const override { return inner_->parameter(); }
  int threads() const override { return inner_->threads(); }
  Memory& memory() const override { return device_->memory; }
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<QueuedBackend>(inner_->sibling(), device_); }
  bool multiplies_int8() const override { return inner_->multiplies_int8(); }

  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) override;
  void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation, Write) override;
  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double input_bound) override;
  void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write) override;
  void column_sums(const Tensor& dy, const Tensor& db, Write) override;
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
  void lstm_step(const LstmStep&) override;
  void lstm_step_backward(const LstmStepBackward&) override;
  void attention(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& y, const Tensor& lse) override;
  void attention_backward(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& lse, const Tensor& dy,
                          const Tensor& dq, const Tensor& dkv) override;
  void attend_cached(const Tensor& q, int64_t q_column, const Tensor& kv, int64_t k_column, int64_t v_column, const Ints& index,
                     const Ints& offsets, int64_t heads, const Tensor& y, const Tensor& weights) override;
  void global_attention(const GlobalAttention&, const AttentionLayout&, const Tensor& y, const Tensor& weights) override;
  void global_attention_backward(const GlobalAttention&, const AttentionLayout&, const Tensor& weights, const Tensor& dy, const Tensor& dq,
                                 const Tensor& dk, const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) override;
  void smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) override;
  void loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) override;
  void log_softmax_top_k(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices) override;
  void sample(const Tensor& logits, const Placed<double>& uniform, const Tensor& tokens) override;
  void sum_of_squares(const Tensor& x, const Tensor& sum) override;
  void adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep&) override;
  void adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep&) override;
  void sgd(const Tensor& value, const Tensor& gradient, const SgdStep&) override;
  void moving_average(const Tensor& value, const Tensor& average, double decay) override;
  void compress(const Compression&) override;
  void decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) override;
  FlatOps& flat() override { return *flat_; }

 private:
  template <class T>
  T inner(const T& x) const {
    return device_->inner(x);
  }
  void later(std::function<void()> body) { device_->queue.push(std::move(body)); }

  std::shared_ptr<QueuedDevice> device_;
  std::unique_ptr<Backend> inner_;
  std::unique_ptr<FlatOps> flat_;
};

// The flat ops of `inner`, later (queued_flat.cpp).
std::unique_ptr<FlatOps> make_queued_flat_ops(FlatOps& inner, QueuedDevice& device);

}  // namespace starling
