// A decorator that counts calls and seconds of each op of another backend, and notes the shapes of its matrix products:
// the profile of `starling bench` and the list of products its efficiency is measured against.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "backend/backend.h"

namespace starling {

struct OpTime {
  double seconds = 0;
  int64_t calls = 0;
};

enum class ProductKind : uint8_t { linear, weight_gradient };
struct ProductShape {
  ProductKind kind;
  int64_t m, k, n;   // linear: y [m, n] = x [m, k] w; weight_gradient: dw [m, n] = a [k, m]^T c [k, n]
  bool wide_output;  // f32 results where activations are bf16
  auto operator<=>(const ProductShape&) const = default;
};
struct AttentionShape {
  int64_t query, key, head_width;
  int products;  // matrix products of [query, key] by [key, head_width] or of the same cost
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
  std::unique_ptr<Backend> sibling() const override { return inner_.sibling(); }  // whose work is not counted
  Memory& memory() const override { return inner_.memory(); }
  FlatOps& flat() override { return inner_.flat(); }

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

 private:
  template <class F>
  auto timed(const char* name, F f);
  void note(const AttentionLayout& layout, int64_t heads, int64_t head_width, int products);
  void note(const GlobalAttention& in, const AttentionLayout& layout, int products);
  Backend& inner_;
};

}  // namespace starling
