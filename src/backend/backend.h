// The contract of the tensor operations. Each op writes into preallocated outputs, works on packed rows [N, D], and is specified by its
// double-precision version in reference/; cpu/ and cuda/ are the fast ones. Ops neither synchronise nor print, and reductions have a fixed
// order. Indices and other host arrays that an op takes are HostDeviceArrays, which are uploaded once for all ops that take the same one.
// No op returns a number: numbers are written to tensors, and only reading these (Tensor::read, download, to_doubles) waits.
//
// Element types: activations are `activation()` (f32, bf16 or f64), parameters and their gradients `parameter()` (f32 or f64). Weights are
// [in, out]: y = x W + b. The gradient of x is dx. "Padding rows" pad N to a multiple of 64; their gradients are zero.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/activation.h"
#include "backend/compression.h"
#include "backend/flat.h"
#include "backend/optimizer_steps.h"
#include "tensor/host_device_array.h"

namespace starling {

// Among tokens: a row without a token, of which embed() makes zeros, or only the position's sinusoid (a decoder that begins with a zero
// embedding).
constexpr int32_t kPaddingRow = -1, kZeroEmbedding = -2;

// Keys the random mask of each row: masks depend on the pair (sentence, position), and neither on packing nor on the rank.
struct RowKeys {
  HostDeviceArray<uint32_t> sentence, position;  // [N]; padding rows have sentence 0xffffffff
};

// Dropout of probability p at one site; an element is dropped when its 16 random bits are below round(p * 65536).
struct Dropout {
  double p = 0;
  uint64_t key = 0;  // hash of (seed, step, site)
  RowKeys rows;
  int64_t first_column = 0;  // the site's column that is column 0 here, if this worker has only some of its columns
  bool active() const { return p > 0; }
  uint32_t threshold() const { return static_cast<uint32_t>(p * 65536 + 0.5); }
  float scale() const { return 65536.0f / static_cast<float>(65536 - threshold()); }
};

// The sentences in packed rows, for attention: the queries of sentence b are rows [query[b], query[b+1]), keys likewise.
struct AttentionLayout {
  Ints query, key;  // [B+1]
  int64_t heads = 1;
  bool causal = false;
  int64_t first_head = 0;  // the model's head that is head 0 here, if this worker has only some of its heads
};

// Relative positions in self-attention (Shaw et al. 2018): a query's place and a key's decide a bin, of which each query and head has
// bins() side by side, [N, heads * bins()]. Rows of no sentence get zeros. scores are added to the products of query and key before these
// are scaled; mass is the sum of the probabilities by bin, after dropout. Their gradients: dmass comes in, dscores goes out.
struct RelativeBins {
  int64_t reach = 0;      // 0: no relative positions
  Tensor scores, mass;    // parameter type; activations
  Tensor dmass, dscores;  // parameter type; activations. In the backward pass only
  int64_t bins() const { return reach > 0 ? 2 * reach + 1 : 0; }
  // The bin of a key that comes `ahead` places after the query.
  int64_t bin(int64_t ahead) const { return std::clamp(ahead, -reach, reach) + reach; }
};

// A weight in the order that its matrix product prefers, made by Backend::pack once per update, or by pack_int8 for inference.
struct Packed {
  virtual ~Packed() = default;
  int64_t in = 0, out = 0;
  bool quantized = false;
  bool constant = false;  // made by pack_constant, which may use another order
};

// One time step of one LSTM layer for R sentences; gates lie side by side in the order input, forget, candidate, output, each H wide. The
// first `past` rows continue from the previous step; the others begin with zero state (sentences are sorted by length).
struct LstmStep {
  Tensor gates;        // [R, 4H] activations; in: x W + b; out: sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
  Tensor recurrent;    // [>= past, 4H] parameter type: the previous step's output times the recurrent weight; empty if past is 0
  Tensor cell_before;  // [>= past, H] parameter type, or i16 of unit bound / 32767; empty when past is 0
  int64_t past = 0;
  Tensor cell;              // [R, H] type of cell_before: clamp(f * cell_before + i * g, +-bound)
  Tensor hidden;            // [R, H] activations: o * tanh(cell), or o * cell
  bool tanh_output = true;  // false: GNMT's quantised form
  double bound = 0;         // 0: none
  Tensor clipped;           // f64 [1], or empty: the number of cells beyond the bound is added
};
// The gradient of an LstmStep. Rows [0, next) also get what flows back from the next step.
struct LstmStepBackward {
  Tensor gates;        // [R, 4H] in: the activated gates; out: gradients before the activations
  Tensor cell_before;  // as above
  int64_t past = 0;
  Tensor cell;        // [R, H] as computed; |cell| = bound means clipped, so no gradient
  Tensor dhidden;     // [R, H] activations: from the layer above
  Tensor drecurrent;  // [>= next, H] parameter type: from the next step; empty if next is 0
  Tensor dcell;       // [>= R, H] parameter type; in: rows [0, next) from the next step; out: rows [0, R), for cell_before
  int64_t next = 0;
  bool tanh_output = true;
  double bound = 0;
};

// A Simpler Simple Recurrent Unit over sentences (Kim et al. 2019), from its candidates and its forget gates before their sigmoid, both
// [N, H] activations: cell = f * (the cell before it) + (1 - f) * candidate, hidden = max(cell, 0). Sentence b has the rows
// [offsets[b], offsets[b + 1]); rows of no sentence get zeros.
struct Ssru {
  Tensor candidate, forget;
  Ints offsets;
  Tensor before;  // [>= sentences, H] parameter type: the cells before the first rows; empty: zeros
  Tensor cell;    // [N, H] parameter type
  Tensor hidden;  // [N, H] activations
};
// The gradient of an Ssru without cells before; those of candidate and forget are overwritten.
struct SsruBackward {
  Tensor candidate, forget;
  Ints offsets;
  Tensor cell;                 // as computed
  Tensor dhidden;              // [N, H] activations
  Tensor dcandidate, dforget;  // [N, H] activations
};

// What smoothed_loss needs to know about each row.
struct LossRows {
  Ints targets;  // [N]; -1: padding row
  double smoothing = 0;
  double logit_bound = 0;            // logits are first clamped to +-this; 0: they are not
  HostDeviceArray<float> weights{};  // [N] factor of each row's gradient; empty: 1
  double r_drop = 0;                 // R-Drop's alpha; if above 0, rows 2i and 2i + 1 are one target position in two passes

  // Rows [begin, begin + n).
  LossRows part(int64_t begin, int64_t n) const {
    return {targets.part(begin, n), smoothing, logit_bound, weights.empty() ? weights : weights.part(begin, n), r_drop};
  }
  // Columns of row_loss.
  int64_t columns() const { return r_drop > 0 ? 4 : 3; }
};

// The logits of tokens [first, first + n) of a vocabulary, whose other tokens belong to other workers, and what workers exchange about
// them, by row.
struct LogitsShard {
  Tensor logits;                      // [N, n] parameter type
  int64_t first = 0, vocabulary = 0;  // vocabulary: the tokens of all workers
  Tensor top;                         // [N] parameter type
  Tensor sums;                        // [N, 3] parameter type

  // The column of a token here; -1 if another worker has it, or if there is no token.
  int32_t column_of(int32_t token) const {
    return token >= first && token < first + logits.columns() ? static_cast<int32_t>(token - first) : -1;
  }
};

// Sums over the target tokens of a batch, read from tensors (autograd/ops.h).
struct LossSums {
  double smoothed = 0;     // label-smoothed cross-entropy, nats: the training objective
  double nll = 0;          // negative log-likelihood, nats
  double consistency = 0;  // for R-Drop: (KL(p || q) + KL(q || p)) / 2 for each token of both passes, nats
  int64_t tokens = 0;
  int64_t correct = 0;                 // tokens whose most probable prediction is correct
  double alignment = 0;                // of guided attention: -ln of what linked source tokens get, nats
  int64_t clipped = 0, clippable = 0;  // values beyond the bounds of clipped states, and all values that are bounded
};

// The states of an optimizer's step, of which the last may be empty.
using StepStates = std::array<Tensor, kMostStates>;

// The tensor operations of one device, and the memory that they work in.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string describe() const = 0;
  virtual DType activation() const = 0;
  virtual DType parameter() const = 0;
  virtual int threads() const { return 1; }
  // The number of target tokens in a batch above which nothing gets faster.
  virtual int64_t best_micro_batch() const { return 4096; }
  // The bytes of logits that the loss holds at once; on a CPU few enough that they stay near its caches.
  virtual int64_t logits_bytes() const { return int64_t{32} << 20; }
  // Whether the loss takes chunks of equal size. A short last one reads the table and its gradient like a long one, which a device that has
  // products enough to hide that for a long one waits for.
  virtual bool equal_chunks() const { return false; }
  // Whether relu_dropout_backward sums columns in its own pass, else layer_gradients does so in its own.
  virtual bool sums_in_relu() const { return false; }
  // The memory that every tensor given to the ops must lie in.
  virtual Memory& memory() const { return host_memory(); }
  // Returns a backend with one thread (or stream) for another worker; its ops accept this one's weights and share its memory.
  virtual std::unique_ptr<Backend> sibling() const = 0;
  // False if products of 8-bit weights are computed as floats: the same results, but no faster.
  virtual bool multiplies_int8() const { return true; }

  // -- matrix products -------------------------------------------------------------------------------------------------
  // Packs w [in, out] (or w [out, in] when transposed) into `reuse` when it fits, else into a new object.
  virtual std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) = 0;
  // The same if `other` is w the other way round, packed from these values: a backend that multiplies both ways from one copy shares it.
  virtual std::shared_ptr<Packed> pack_other_way(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse,
                                                 const std::shared_ptr<Packed>& /*other*/) {
    return pack(w, transposed, std::move(reuse));
  }
  // The same for inference with constant weights, which may be packed differently: for few rows, and for any number of them.
  virtual std::shared_ptr<Packed> pack_constant(const Tensor& w, bool transposed) { return pack(w, transposed, nullptr); }
  // In inference, rows are padded to a multiple of this, so that products have few different shapes; 1 if products with constant weights,
  // including 8-bit ones, take any number of rows equally well.
  virtual int64_t row_multiple(int64_t rows) const { return rows <= 4 ? 1 : rows <= 64 ? 4 : 16; }
  // The multiple where each new number of rows costs much, or where backends of several kinds must agree on it.
  static int64_t coarse_row_multiple(int64_t rows) { return rows <= 128 ? 16 : 64; }
  // y [N, out] = activation(x [N, in] w + b), none or relu; b may be empty; y may be f32 where activations are bf16.
  virtual void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation, Write) = 0;
  // Packs the weight as 8-bit integers with one scale per output, s_o = max |w_io|, q_io = round(127 w_io / s_o). linear() then rounds each
  // row of x to 127 / a, with a = input_bound if that is given (values beyond it saturate), else the row's largest magnitude, and
  // multiplies integers: y = a s / 127^2 * (xq wq) + b. For inference.
  virtual std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double input_bound) = 0;
  // dw [P, Q] = a [N, P]^T c [N, Q], in parameter type.
  virtual void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write) = 0;
  // db [Q] = column sums of dy [N, Q].
  virtual void column_sums(const Tensor& dy, const Tensor& db, Write) = 0;
  // Both, of a layer y = x W + b.
  virtual void layer_gradients(const Tensor& x, const Tensor& dy, const Tensor& dw, Write dw_write, const Tensor& db, Write db_write) {
    weight_gradient(x, dy, dw, dw_write);
    column_sums(dy, db, db_write);
  }

  // -- embeddings ------------------------------------------------------------------------------------------------------
  // y [N, D] = dropout(scale * table[token] + sinusoid(position)); a kPaddingRow becomes zero, kZeroEmbedding the sinusoid alone. Without
  // positions there is no sinusoid.
  virtual void embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout&, const Tensor& y) = 0;
  // dtable[token] += scale * dropout(dy).
  virtual void embed_backward(const Ints& tokens, double scale, const Dropout&, const Tensor& dy, const Tensor& dtable) = 0;

  // -- row-wise --------------------------------------------------------------------------------------------------------
  // y = (x - mean) * rstd * gamma + beta by row, rstd = 1 / sqrt(variance + epsilon); statistics [N, 2] = mean, rstd in f32 (f64 for
  // reference).
  virtual void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                          const Tensor& statistics) = 0;
  virtual void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                                   Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) = 0;
  // y = x + dropout(s); x may be empty: y = dropout(s).
  virtual void add_dropout(const Tensor& x, const Tensor& s, const Dropout&, const Tensor& y) = 0;
  // ds = dropout(dy) with the mask of the forward pass.
  virtual void dropout_backward(const Tensor& dy, const Dropout&, const Tensor& ds, Write) = 0;
  // In place: dh *= scale where h > 0, else 0. h is relu followed by dropout of the given scale. If db is not empty, column_sums(dh, db)
  // follows.
  virtual void relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh, const Tensor& db, Write db_write) = 0;
  // y = activation(x); y may be x.
  virtual void activate(const Tensor& x, Activation, const Tensor& y) = 0;
  // In place: dy *= activation'(x).
  virtual void activate_backward(const Tensor& x, Activation, const Tensor& dy) = 0;
  // y += x.
  virtual void add(const Tensor& x, const Tensor& y) = 0;
  // y[n] = x[index[n]] (or +=); rows of any element type if overwriting; a negative index means zeros.
  virtual void gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write) = 0;
  // y[index[n]] = columns [x_column, x_column + columns of y) of x[n], for the first rows of x, one per index; indices must be distinct.
  virtual void scatter_rows(const Tensor& x, int64_t x_column, const Ints& index, const Tensor& y) = 0;
  // Columns [y_column, y_column + width) of y = columns [x_column, x_column + width) of x (or +=).
  virtual void copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write) = 0;
  // y = x clamped to +-bound; y may be x, and x may also be of parameter type. The number of elements beyond the bound is added to clipped,
  // f64 [1] or empty.
  virtual void clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) = 0;
  // dx = dy where |x| <= bound, else 0 (or +=).
  virtual void clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write) = 0;

  // -- recurrence ------------------------------------------------------------------------------------------------------
  virtual void lstm_step(const LstmStep&) = 0;
  virtual void lstm_step_backward(const LstmStepBackward&) = 0;
  virtual void ssru(const Ssru&) = 0;
  virtual void ssru_backward(const SsruBackward&) = 0;

  // -- attention -------------------------------------------------------------------------------------------------------
  // Scaled dot-product attention by sentence and head. q [Nq, >=D] starts at column q_column of its tensor, k and v likewise in kv;
  // y [Nq, D], zero on padding rows; lse [Nq, heads] keeps the log of each softmax's denominator. Dropout rows are the queries' keys.
  struct AttentionInput {
    Tensor q, kv;
    int64_t q_column, k_column, v_column;
    RelativeBins relative{};
  };
  virtual void attention(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& y, const Tensor& lse) = 0;
  // Writes dq, dk, dv at the same columns of dq_tensor and dkv_tensor (which may be one tensor); other columns are untouched.
  virtual void attention_backward(const AttentionInput&, const AttentionLayout&, const Dropout&, const Tensor& lse, const Tensor& dy,
                                  const Tensor& dq, const Tensor& dkv) = 0;
  // One query per row r over the cached rows index[offsets[r] .. offsets[r+1]) of k and v; with relative positions the query's place is
  // that of the last of them. A row without any gets zeros. weights, if not empty, gets for each of these rows its attention, averaged over
  // heads, f32 [offsets.back()].
  virtual void attend_cached(const AttentionInput&, const Ints& index, const Ints& offsets, int64_t heads, const Tensor& y,
                             const Tensor& weights) = 0;
  // Attention of recurrent models, with one head whose values are the rows of memory: y_i = sum_j p_ij memory_j, p = softmax_j of the
  // scores v . tanh(q_i + k_j) (additive), or q_i . k_j / sqrt(A) if v is empty (dot product). q [Nq, A], k [Nk, A], v [A] parameter type,
  // memory [Nk, D], y [Nq, D]; layout.heads and causal are not used. weights: p in parameter type, sentence by sentence, query-major. A
  // backend may treat elements of q and k beyond +-43 in additive scores as +-43.
  struct GlobalAttention {
    Tensor q, k, v, memory;
  };
  virtual void global_attention(const GlobalAttention&, const AttentionLayout&, const Tensor& y, const Tensor& weights) = 0;
  // Overwrites dq and dk (zero on rows of no sentence); overwrites or adds to dmemory and dv. dv is empty if v is. dweights: a gradient of
  // the weights themselves, beside that by way of y, in their order and type; may be empty.
  virtual void global_attention_backward(const GlobalAttention&, const AttentionLayout&, const Tensor& weights, const Tensor& dy,
                                         const Tensor& dweights, const Tensor& dq, const Tensor& dk, const Tensor& dmemory,
                                         Write dmemory_write, const Tensor& dv, Write dv_write) = 0;

  // -- output ----------------------------------------------------------------------------------------------------------
  // Label-smoothed cross-entropy of softmax(logits [N, V]) against the targets and, if dlogits is given, its gradient in activation type:
  // weight * (p - (1 - e) onehot - e / V), zero where a logit was clamped. Unweighted row results go to row_loss [N, 3] = smoothed, nll,
  // correct. With rows.r_drop a (Wu et al. 2021), two rows side by side have probabilities p and q, one target and one weight: their
  // gradient also includes that of weight * a / 2 * (KL(p || q) + KL(q || p)), and row_loss [N, 4] ends with half of this sum of KLs, on
  // both rows.
  virtual void smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) = 0;
  // The same for logits that are spread over workers by tokens, in three steps. First: logits, after clamping, become e^(logit - top), with
  // a minus sign where they were clamped; top is the row's largest logit here; sums [N, 3] are the sums of these exponentials and of the
  // logits, and the target's logit, or 0 if another worker has it. Padding rows get zeros, and their logits become undefined.
  virtual void shard_exponentials(const LogitsShard&, const LossRows& rows) = 0;
  // Second, with the maximum of top over the workers, group_top [N]: top becomes e^(top - group_top), and the sums of exponentials are
  // multiplied by that.
  virtual void rescale_shard(const LogitsShard&, const Tensor& group_top) = 0;
  // Third, with sums added up over the workers: row_loss as above and, if dlogits [N, n] is given, the gradient of this worker's logits.
  // Only dlogits needs the exponentials.
  virtual void shard_loss(const LogitsShard&, const Tensor& group_top, const LossRows& rows, const Tensor& row_loss,
                          const Tensor& dlogits) = 0;
  // sums += over the rows without padding: smoothed, times their weights; nll; correct; with rows.r_drop the last column, times their
  // weights. row_loss [N, 3 or 4] as above, sums f64 [3 or 4].
  virtual void loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) = 0;
  // Per row of logits [R, V]: the k largest, descending, ties to the smaller index, values in parameter type [R, k], indices i32 [R, k];
  // and denominator, f64 [R, 2]: the largest logit and the sum of e^(logit - largest).
  virtual void top_logits(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices, const Tensor& denominator) = 0;
  // The same for logits = x [>= R, in] w + b, clamped to +-bound unless that is 0, which need not exist as a whole; b may be empty. Rows of
  // x beyond R are ignored; they pad x to a row_multiple.
  virtual void linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                 const Tensor& indices, const Tensor& denominator) = 0;
  // Per row: the first token up to which the probabilities softmax(logits [R, V]) sum to more than uniform[r], in [0, 1). With uniform
  // random numbers these are samples, tokens i32 [R]. Tokens whose probability is zero in f32 are never chosen.
  virtual void sample(const Tensor& logits, const HostDeviceArray<double>& uniform, const Tensor& tokens) = 0;

  // -- flat buffers (parameter type) -------------------------------------------------------------------------------------
  virtual FlatOps& flat() = 0;
  // sum, f64 [1], += the squares of x.
  virtual void sum_of_squares(const Tensor& x, const Tensor& sum) = 0;
  // Updates value and the step's states by the gradient (optimizer_steps.h).
  virtual void optimizer_step(const Tensor& value, const Tensor& gradient, const StepStates& states, const OptimizerStep& step) = 0;
  // average = decay * average + (1 - decay) * value.
  virtual void moving_average(const Tensor& value, const Tensor& average, double decay) = 0;
  // Writes the code of what is sent (backend/compression.h).
  virtual void compress(const Compression&) = 0;
  // sum += scale * what the codes [n * layout.bytes] hold, for each element in the order of the codes.
  virtual void decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) = 0;
};

// Makes a backend: "reference" (f64), "cpu" or "cpu:f32" (f32), "cpu:bf16"; "cuda" or "cuda:bf16", "cuda:f32", with a card's number
// "cuda:1", "cuda:1:f32". threads 0 = one per core of the affinity mask; a card's backend ignores it.
std::unique_ptr<Backend> make_backend(std::string_view spec, int threads = 0);

// Replaces the backend that make_backend makes for `spec`, or adds one. For tests, before other threads run.
using BackendMaker = std::function<std::unique_ptr<Backend>(int threads)>;
void register_backend(const std::string& spec, BackendMaker maker);

// True if bf16 matrix products run natively (AVX512-BF16 or AMX).
bool cpu_has_bf16();
// True if they are also faster than those of f32: Intel's processors whose AMX is missing or hidden multiply bf16 at half that rate.
// Measured once a process, in half a millisecond.
bool cpu_prefers_bf16();
std::string cpu_products();  // the same in words
// The instruction set of the vectorised loops: "x86-64-v2", "-v3" (AVX2) or "-v4" (AVX-512); "armv8-a" (NEON).
std::string cpu_instruction_set();

}  // namespace starling
