// The class of the CPU backend. Its ops are in the .cpp files beside it, by topic, their contracts in backend/backend.h. Most ops
// cut their work into ranges, which threads take as they become free, and call a loop of the table (kernels/kernels.h) for each.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/chunks.h"
#include "backend/cpu/dispatch.h"
#include "backend/cpu/products.h"
#include "backend/numbers.h"

namespace starling {

inline kernels::Mask mask_of(const Dropout& d) {
  if (!d.active()) return {};
  return {d.key, d.threshold(), d.scale(), d.rows.sentence.data(), d.rows.position.data(), d.first_column};
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(DType activation, int threads);
  std::string describe() const override;
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<CpuBackend>(activation_, 1); }
  DType activation() const override { return activation_; }
  DType parameter() const override { return DType::f32; }
  int threads() const override { return threads_; }
  bool multiplies_int8() const override { return vnni_ || products_.multiplies_int8(); }
  FlatOps& flat() override { return *flat_; }
  std::shared_ptr<Packed> pack_constant(const Tensor& w, bool transposed) override;
  void layer_gradients(const Tensor& x, const Tensor& dy, const Tensor& dw, Write, const Tensor& db, Write) override;
  int64_t row_multiple(int64_t rows) const override {
    return vnni_ && (activation_ == DType::f32 || own_products(2)) ? 1 : Backend::row_multiple(rows);
  }

#include "backend/ops.inc"  // the files of this folder

 private:
  void enter() const;
  // Whether products with a weight of so many inputs are our own (own_products.cpp): all of bf16 but those by AMX, which are oneDNN's, and
  // of f32 those of constant weights. In training oneDNN's of f32 were a tenth faster.
  bool own_products(int64_t in) const { return activation_ == DType::bf16 && kernels_.multiply && !bf16_tiles_ && in % 2 == 0; }
  bool own_products(const Packed& w) const { return activation_ == DType::f32 ? w.constant : own_products(w.in); }
  std::shared_ptr<Packed> pack_own(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse);
  void multiply(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation, Write);
  void own_weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write, const Tensor& db, Write);
  void linear_integers(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation, Write);
  // Rows as vnni::quantize makes them, valid until the next 8-bit product.
  struct RoundedRows {
    const uint8_t* integers;
    const float* units;
  };
  RoundedRows round_rows(const Tensor& x, const PackedInt8& w);
  void linear_int8(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation, Write);
  void extend_signal(int64_t positions, int64_t D);
  kernels::RelativeTask relative_task(const RelativeBins& r, int64_t row, int64_t head) const;
  template <class F>
  void each_head(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& dy, int64_t D, F f);
  template <class F>
  void each_ssru(const Ints& offsets, const Tensor& candidate, const Tensor& forget, const Tensor& cell, F f);
  template <class F>
  void each_sentence(const GlobalAttention&, const AttentionLayout&, const Tensor& weights, F f);
  template <class F>
  int64_t first_bad(size_t first, size_t last, F f) const;
  int64_t compress_tensor(const kernels::CompressionTask&, const CodePart&) const;
  int64_t gather(const kernels::CompressionTask&, const CodePart&, int32_t threshold, bool again, std::vector<int32_t>& magnitudes,
                 std::vector<int32_t>& counts) const;

  // The ranges that [0, n) is cut into: the same ones for the same n.
  Chunks chunks_of(int64_t n, int64_t grain) const {
    constexpr int64_t kEach = 4;  // per thread
    return {n, grain, threads_ > 1 ? kEach * threads_ : 1};
  }

  // Calls f(begin, end, thread) over the ranges of [0, n), each on whichever thread is free.
  template <class F>
  void ranges(int64_t n, int64_t grain, F f) const {
    const Chunks chunks = chunks_of(n, grain);
    take_chunks(threads_, chunks.count, [&](int64_t c, int thread) { f(chunks.begin(c), chunks.begin(c + 1), thread); });
  }

  // Calls f(begin, end, range) over [0, n), cut at multiples of `grain` into at most one range per thread: for results that are put
  // together in the order of the ranges, and for loops that are slower on narrow ranges, such as those that read a whole weight for each.
  template <class F>
  void fixed_ranges(int64_t n, int64_t grain, F f) const {
    const Chunks chunks(n, grain, threads_);
    take_chunks(threads_, chunks.count, [&](int64_t c, int) { f(chunks.begin(c), chunks.begin(c + 1), static_cast<int>(c)); });
  }

  // Returns the sum of the counts that f(begin, end) returns for the ranges.
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

  // Call before a parallel region, since an exception (out of memory) must not leave one.
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
  const bool vnni_ = multiplies_by_vnni(), tiles_ = multiplies_by_tiles();
  const bool bf16_tiles_ = multiplies_bf16_by_tiles(), fast_pairs_ = activation_ == DType::bf16 && multiplies_pairs_fast();
  std::unique_ptr<FlatOps> flat_ = make_host_flat_ops(threads_);
  Arena int8_arena_{host_memory()};  // working memory of one 8-bit product
  Tensor logits_;                    // for a few rows
  std::vector<std::unique_ptr<Storage>> scratch_;
  std::vector<float> signal_, partial_;
  std::vector<int64_t> first_weight_;
  int64_t signal_width_ = 0, signal_rows_ = 0;
};

}  // namespace starling
