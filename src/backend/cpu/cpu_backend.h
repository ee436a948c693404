// The class of the CPU backend; its ops are in the .cpp files beside it, by what they are about, their contracts in backend/backend.h. An
// op cuts its work into one fixed range a thread and calls a loop of the table (kernels/kernels.h) for each.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/dispatch.h"
#include "backend/cpu/products.h"
#include "backend/numbers.h"

namespace starling {

inline kernels::Mask mask_of(const Dropout& d) {
  if (!d.active()) return {};
  return {d.key, d.threshold(), d.scale(), d.rows.sentence.data(), d.rows.position.data()};
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(DType activation, int threads);
  std::string describe() const override;
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<CpuBackend>(activation_, 1); }
  DType activation() const override { return activation_; }
  DType parameter() const override { return DType::f32; }
  int threads() const override { return threads_; }
  bool multiplies_int8() const override { return products_.multiplies_int8(); }
  FlatOps& flat() override { return *flat_; }

  // cpu.cpp: matrix products
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
  void enter() const;
  void linear_int8(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation, Write);
  void extend_signal(int64_t positions, int64_t D);
  template <class F>
  void each_head(const AttentionInput&, const AttentionLayout&, const Dropout&, int64_t D, F f);
  template <class F>
  void each_sentence(const GlobalAttention&, const AttentionLayout&, const Tensor& weights, F f);
  template <class F>
  int64_t first_bad(size_t first, size_t last, F f) const;
  int64_t compress_tensor(const kernels::CompressionTask&, const CodePart&) const;
  int64_t gather(const kernels::CompressionTask&, const CodePart&, int32_t threshold, bool again, std::vector<int32_t>& magnitudes,
                 std::vector<int32_t>& counts) const;

  // f(begin, end, thread) over [0, n) in one contiguous, fixed range per thread, cut at multiples of `grain`.
  template <class F>
  void ranges(int64_t n, int64_t grain, F f) const {
    const int64_t pieces = (n + grain - 1) / grain;
    const int threads = static_cast<int>(std::min<int64_t>(threads_, pieces));
    if (threads <= 1) return f(int64_t{0}, n, 0);
#pragma omp parallel num_threads(threads)
    {
      const int t = omp_get_thread_num(), count = omp_get_num_threads();
      const int64_t begin = pieces * t / count * grain, end = std::min(n, pieces * (t + 1) / count * grain);
      if (begin < end) f(begin, end, t);
    }
  }

  // The sum of what f(begin, end) counts in the ranges.
  template <class F>
  double counted(int64_t n, int64_t grain, F f) const {
    std::atomic<int64_t> total = 0;
    ranges(n, grain, [&](int64_t begin, int64_t end, int) { total += f(begin, end); });
    return static_cast<double>(total.load());
  }

  const kernels::Table& loops(const Tensor& t) const {
    CHECK(t.dtype() == DType::f32 || t.dtype() == activation_, "arithmetic on {}", name_of(t.dtype()));
    return t.dtype() == DType::f32 ? wide_ : kernels_;
  }

  std::byte* element(const Tensor& t, int64_t row, int64_t column) const {
    return t.raw() + (row * t.columns() + column) * size_of(activation_);
  }

  // Before a parallel region, since an exception (no memory) must not leave one.
  void reserve_scratch(int64_t floats) {
    for (auto& buffer : scratch_)
      if (!buffer || buffer->bytes() < floats * 4) buffer.reset(), buffer = std::make_unique<Storage>(floats * 4);
  }
  float* scratch(int thread) const { return reinterpret_cast<float*>(scratch_[thread]->data()); }

  DType activation_;
  int threads_;
  const kernels::Table& kernels_;  // for activations
  const kernels::Table& wide_;     // for f32
  const kernels::CompressionTable& compression_ = compression_table();
  Products products_;
  std::unique_ptr<FlatOps> flat_ = make_host_flat_ops(threads_);
  Arena int8_arena_{host_memory()};  // working memory of one 8-bit product
  std::vector<std::unique_ptr<Storage>> scratch_;
  std::vector<float> signal_, partial_;
  std::vector<int64_t> first_weight_;
  int64_t signal_width_ = 0, signal_rows_ = 0;
};

}  // namespace starling
