// The contract of the tensor operations. Each op writes into preallocated outputs, works on packed rows [N, D], and is specified by
// its double-precision version in reference/; cpu/ is the fast one. Ops neither synchronise nor print, and reductions have a fixed order.
//
// Element types: activations are `activation()` (f32, bf16 or f64), parameters and their gradients `parameter()` (f32 or f64).
// Weights are [in, out]: y = x W + b. The gradient of x is dx. "Idle rows" pad N to a multiple of 64; their gradients are zero.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace starling {

enum class Write : bool { overwrite, accumulate };
enum class Activation : uint8_t { none, relu };

// Which random mask a row gets: the pair (sentence, position) keys dropout, so masks depend neither on packing nor on the rank.
struct RowKeys {
  std::vector<uint32_t> sentence, position;  // [N]; idle rows have sentence 0xffffffff
};

// Dropout of probability p at one site; an element is dropped when its 16 random bits are below round(p * 65536).
struct Dropout {
  double p = 0;
  uint64_t key = 0;  // hash of (seed, step, site)
  const RowKeys* rows = nullptr;
  bool active() const { return p > 0; }
  uint32_t threshold() const { return static_cast<uint32_t>(p * 65536 + 0.5); }
  float scale() const { return 65536.0f / static_cast<float>(65536 - threshold()); }
};

// Sentences of packed rows for attention: queries of sentence b are rows [query[b], query[b+1]), keys likewise.
struct AttentionLayout {
  std::span<const int32_t> query, key;  // [B+1]
  int64_t heads = 1;
  bool causal = false;
};

// A weight in the order its matrix product likes best; made by Backend::pack once an update.
struct Packed {
  virtual ~Packed() = default;
  int64_t in = 0, out = 0;
};

// Sums over the target tokens of a batch.
struct LossSums {
  double smoothed = 0;  // label-smoothed cross-entropy, nats: what is trained
  double nll = 0;       // negative log-likelihood, nats
  int64_t tokens = 0;
  int64_t correct = 0;  // tokens whose most probable prediction is right
};

struct AdamStep {
  double rate, beta1, beta2, epsilon, weight_decay;
  bool decoupled;  // AdamW
  double scale;    // the gradient is multiplied by this first (1 / tokens, and clipping)
  int64_t update;  // 1-based, for bias correction
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string describe() const = 0;
  virtual DType activation() const = 0;
  virtual DType parameter() const = 0;
  virtual int threads() const { return 1; }

  // -- matrix products -------------------------------------------------------------------------------------------------
  // Packs w [in, out] (or w [out, in] when transposed) into `reuse` when it fits, else into a new object.
  virtual std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) = 0;
  // y [N, out] = activation(x [N, in] w + b); b may be empty; y may be f32 where activations are bf16.
  virtual void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation, Write) = 0;
  // dw [P, Q] = a [N, P]^T c [N, Q], in parameter type.
  virtual void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write) = 0;
  // db [Q] = column sums of dy [N, Q].
  virtual void column_sums(const Tensor& dy, const Tensor& db, Write) = 0;

  // -- embeddings ------------------------------------------------------------------------------------------------------
  // y [N, D] = dropout(scale * table[token] + sinusoid(position)); token -1 marks an idle row, which becomes zero.
  virtual void embed(std::span<const int32_t> tokens, std::span<const int32_t> positions, const Tensor& table, double scale, const Dropout&,
                     const Tensor& y) = 0;
  // dtable[token] += scale * dropout(dy).
  virtual void embed_backward(std::span<const int32_t> tokens, double scale, const Dropout&, const Tensor& dy, const Tensor& dtable) = 0;

  // -- row-wise --------------------------------------------------------------------------------------------------------
  // y = (x - mean) * rstd * gamma + beta by row, variance + 1e-5; statistics [N, 2] = mean, rstd in f32 (f64 for reference).
  virtual void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y, const Tensor& statistics) = 0;
  virtual void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                                   Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) = 0;
  // y = x + dropout(s); x may be empty: y = dropout(s).
  virtual void add_dropout(const Tensor& x, const Tensor& s, const Dropout&, const Tensor& y) = 0;
  // ds = dropout(dy) with the mask of the forward pass.
  virtual void dropout_backward(const Tensor& dy, const Dropout&, const Tensor& ds, Write) = 0;
  // In place: dh *= scale where h > 0, else 0. h is relu followed by dropout of the given scale.
  virtual void relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh) = 0;
  // y += x.
  virtual void add(const Tensor& x, const Tensor& y) = 0;

  // -- attention -------------------------------------------------------------------------------------------------------
  // Scaled dot-product attention by sentence and head. q [Nq, >=D] starts at column q_column of its tensor, k and v likewise in kv;
  // y [Nq, D]; lse [Nq, heads] keeps the log of each softmax's denominator. Dropout rows are the queries' keys.
  struct AttentionInput {
    Tensor q, kv;
    int64_t q_column, k_column, v_column;
  };
  virtual void attention(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& y, const Tensor& lse) = 0;
  // Writes dq, dk, dv at the same columns of dq_tensor and dkv_tensor (which may be one tensor); other columns are untouched.
  virtual void attention_backward(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& lse, const Tensor& dy,
                                  const Tensor& dq, const Tensor& dkv) = 0;
  // One query per row r over the cached rows index[offsets[r] .. offsets[r+1]) of k and v (activation type, column offsets as above).
  virtual void attend_cached(const Tensor& q, int64_t q_column, const Tensor& kv, int64_t k_column, int64_t v_column,
                             std::span<const int32_t> index, std::span<const int32_t> offsets, int64_t heads, const Tensor& y) = 0;

  // -- output ----------------------------------------------------------------------------------------------------------
  // Label-smoothed cross-entropy of softmax(logits [N, V]) against targets (-1: idle row) and, if dlogits is given, its gradient
  // p - (1 - e) onehot - e / V in activation type. Row results go to row_loss [N, 3] = smoothed, nll, correct.
  virtual void smoothed_loss(const Tensor& logits, std::span<const int32_t> targets, double smoothing, const Tensor& row_loss,
                             const Tensor& dlogits) = 0;
  // Per row: the k largest log-probabilities of softmax(logits [R, V]), descending, ties to the smaller index.
  virtual void log_softmax_top_k(const Tensor& logits, int64_t k, std::span<float> values, std::span<int32_t> indices) = 0;

  // -- flat buffers (parameter type) -------------------------------------------------------------------------------------
  virtual double sum_of_squares(const Tensor& x) = 0;
  virtual void adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep&) = 0;
  // average = decay * average + (1 - decay) * value.
  virtual void moving_average(const Tensor& value, const Tensor& average, double decay) = 0;
};

// "reference" (f64), "cpu" or "cpu:f32" (f32), "cpu:bf16". threads 0 = one per core of the affinity mask.
std::unique_ptr<Backend> make_backend(std::string_view spec, int threads = 0);

// True where bf16 matrix products run natively (AVX512-BF16 or AMX).
bool cpu_has_bf16();
// The instruction set of the vectorised loops: "x86-64-v2", "-v3" (AVX2) or "-v4" (AVX-512).
std::string cpu_instruction_set();

}  // namespace starling
