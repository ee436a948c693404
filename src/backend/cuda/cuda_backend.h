// The class of the CUDA backend. Its ops are in the .cpp files beside it, by topic, their contracts in backend/backend.h. An op checks
// shapes, fills a task and puts kernels on the stream (kernels/); it never waits.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/device.h"
#include "backend/cuda/products.h"

namespace starling::STARLING_CUDA {

namespace kernels {
struct Attention;
struct Codes;
struct ColumnSums;
struct GlobalAttention;
struct Loss;
struct Relative;
}  // namespace kernels

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<CudaDevice> device, DType activation);
  std::string describe() const override;
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<CudaBackend>(device_, activation_); }
  DType activation() const override { return activation_; }
  DType parameter() const override { return DType::f32; }
  Memory& memory() const override { return device_->memory(); }
  int64_t best_micro_batch() const override { return 32768; }
  int64_t logits_bytes() const override { return card_logits_bytes(static_cast<int64_t>(device_->properties().totalGlobalMem)); }
  bool equal_chunks() const override { return true; }
  bool sums_in_relu() const override { return true; }
  std::shared_ptr<Packed> pack_other_way(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse,
                                         const std::shared_ptr<Packed>& other) override;
  bool multiplies_int8() const override { return false; }
  // cuBLASLt is asked for an algorithm for each new shape.
  int64_t row_multiple(int64_t rows) const override { return coarse_row_multiple(rows); }
  std::shared_ptr<Packed> pack_constant(const Tensor& w, bool transposed) override;
  FlatOps& flat() override { return *flat_; }

#include "backend/ops.inc"  // the files of this folder

 private:
  cudaStream_t stream() const { return device_->stream(); }
  kernels::Type type() const { return type_of(activation_); }
  static kernels::Type type_of(DType);

  // The address of a tensor's elements on the card; null for an empty handle.
  template <class T = void>
  T* at(const Tensor& x) const {
    CHECK(!x || &x.memory() == &memory(), "an op gets a tensor {} that lies elsewhere", x.shape().text());
    return reinterpret_cast<T*>(x.raw());
  }
  template <class T>
  const T* at(const HostDeviceArray<T>& x) const {
    CHECK(x.empty() || x.there(), "an op gets {} numbers that nobody has uploaded", x.size());
    return x.empty() ? nullptr : at<const T>(x.there());
  }
  void* element(const Tensor& x, int64_t row, int64_t column) const {
    return at<std::byte>(x) + (row * x.columns() + column) * size_of(x.dtype());
  }
  kernels::Mask mask_of(const Dropout&) const;
  kernels::Loss loss_of(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) const;
  kernels::Loss loss_of(const LogitsShard& s, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) const;

  // Working memory of one op: one block per slot, which the next op may overwrite.
  template <class T>
  T* scratch(size_t slot, int64_t count) {
    std::unique_ptr<Storage>& block = scratch_.at(slot);
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    if (!block || block->bytes() < bytes) {
      block.reset();
      block = std::make_unique<Storage>(bytes + bytes / 4, memory());
    }
    return reinterpret_cast<T*>(block->data());
  }
  // Uploads a host list for one op into its working memory.
  const int32_t* send(size_t slot, std::span<const int32_t> numbers);
  kernels::Attention attention_task(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& lse, int64_t rows,
                                    int64_t D) const;
  kernels::Relative relative_task(const RelativeBins&, int64_t rows, int64_t heads) const;
  kernels::GlobalAttention global_attention_task(const GlobalAttention&, const AttentionLayout&, const Tensor& weights) const;
  kernels::Codes codes_of(const CodeLayout& layout, int64_t count);
  // db = (or +=) the sums, with working memory for the task's parts.
  void add_columns(kernels::ColumnSums, const Tensor& db, Write);
  void add_counts(const double* parts, int64_t n, const Tensor& sum);
  Product product_of(const PackedWeight& w, const void* x, int64_t N, void* y, DType out) const;
  const void* bias_of(const PackedWeight& w, const Tensor& b, DType type);
  void linear_int8(const Tensor& x, const PackedWeight& w, const Tensor& b, const Tensor& y, Activation, Write);

  std::shared_ptr<CudaDevice> device_;
  DType activation_;
  Products products_;
  std::unique_ptr<FlatOps> flat_;
  std::array<std::unique_ptr<Storage>, 3> scratch_;
  struct SentLayout;
  std::map<const CodeLayout*, std::shared_ptr<SentLayout>> layouts_;
  Tensor signal_;  // the sinusoids of the positions seen so far
  Tensor logits_;  // of the last linear_top_logits, or larger
};

std::unique_ptr<FlatOps> make_cuda_flat_ops(CudaDevice& device);

}  // namespace starling::STARLING_CUDA
