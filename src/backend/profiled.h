// A decorator that counts calls and seconds of each op of another backend and records the shapes of its matrix products: the profile of
// `starling bench`, and the list of products against which its efficiency is measured.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "backend/backend.h"

namespace starling {

struct OpTime {
  double seconds = 0;
  int64_t calls = 0;
  double bytes = 0;  // that must be read and written, each tensor once; 0 if not counted for this op
  double flops = 0;  // of matrix products
};

enum class ProductKind : uint8_t { linear, weight_gradient };
struct ProductShape {
  ProductKind kind;
  int64_t m, k, n;   // linear: y [m, n] = x [m, k] w; weight_gradient: dw [m, n] = a [k, m]^T c [k, n]
  bool wide_output;  // f32 results although activations are bf16
  bool quantized = false;
  auto operator<=>(const ProductShape&) const = default;
};
struct AttentionShape {
  int64_t query, key, head_width;
  int products;  // number of matrix products of [query, key] by [key, head_width], or of the same cost
  auto operator<=>(const AttentionShape&) const = default;
};

class ProfiledBackend : public Backend {
 public:
  explicit ProfiledBackend(Backend& inner) : inner_(inner) {}

  std::map<std::string, OpTime> times;
  std::map<ProductShape, int64_t> products;      // calls by shape
  std::map<AttentionShape, int64_t> attentions;  // heads by shape of one sentence
  void clear() { times.clear(), products.clear(), attentions.clear(); }

  std::string describe() const override { return inner_.describe(); }
  bool multiplies_int8() const override { return inner_.multiplies_int8(); }
  DType activation() const override { return inner_.activation(); }
  DType parameter() const override { return inner_.parameter(); }
  int threads() const override { return inner_.threads(); }
  std::unique_ptr<Backend> sibling() const override { return inner_.sibling(); }  // its work is not counted
  Memory& memory() const override { return inner_.memory(); }
  FlatOps& flat() override { return inner_.flat(); }
  std::shared_ptr<Packed> pack_constant(const Tensor& w, bool transposed) override;
  std::shared_ptr<Packed> pack_other_way(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse,
                                         const std::shared_ptr<Packed>& other) override;
  void layer_gradients(const Tensor& x, const Tensor& dy, const Tensor& dw, Write, const Tensor& db, Write) override;
  int64_t row_multiple(int64_t rows) const override { return inner_.row_multiple(rows); }
  int64_t best_micro_batch() const override { return inner_.best_micro_batch(); }
  int64_t logits_bytes() const override { return inner_.logits_bytes(); }
  bool equal_chunks() const override { return inner_.equal_chunks(); }
  bool sums_in_relu() const override { return inner_.sums_in_relu(); }

#include "backend/ops.inc"

 private:
  template <class F>
  auto timed(const char* name, int64_t bytes, F f);
  int64_t packed_bytes(const Tensor& w) const { return activation() == w.dtype() ? 0 : w.bytes() + w.count() * size_of(activation()); }
  void note_gradient(const Tensor& a, const Tensor& c);
  double note(const AttentionLayout& layout, int64_t heads, int64_t head_width, int products);
  void note(const GlobalAttention& in, const AttentionLayout& layout, int products);
  Backend& inner_;
};

}  // namespace starling
