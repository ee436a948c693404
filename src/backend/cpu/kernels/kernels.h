// The vectorised loops, as a table of functions for one instruction set and one activation type. The files of this folder are compiled once
// per instruction set; dispatch.cpp picks the best at run time. A kernel works on one range and knows nothing about threads.
#pragma once

#include <cstdint>

#include "backend/activation.h"
#include "backend/optimizer_steps.h"
#include "tensor/tensor.h"

namespace starling::kernels {

struct Mask {  // a Dropout without its standard-library parts
  uint64_t key = 0;
  uint32_t threshold = 0;  // 0: no dropout
  float scale = 1;
  const uint32_t* sentence = nullptr;
  const uint32_t* position = nullptr;
  int64_t first_column = 0;
};

struct RelativeTask {  // RelativeBins of one head, or of all heads of a row; reach 0: none
  int64_t reach;
  int64_t stride;  // from row to row, elements
  const float* scores;
  void* mass;
  const float* dmass;
  void* dscores;
};

struct AttentionRows {  // where the rows of one task begin, and how many there are
  const void *q, *k, *v, *dy;
  int64_t queries, keys;
};

struct AttentionTask {
  const void* q;  // first query of the sentence, at the head's columns
  const void* k;
  const void* v;
  int64_t ldq, ldkv;  // row strides, elements
  int64_t queries, keys, head_width;
  bool causal;
  float scale;
  Mask mask;   // key already folded with the head; sentence/position point at the first query
  float* lse;  // [queries] with stride lse_stride
  int64_t lse_stride;
  void* y;  // forward
  int64_t ldy;
  const void* dy;  // backward
  void* dq;
  void* dk;
  void* dv;
  int64_t ld_dq, ld_dkv;
  RelativeTask relative;
  AttentionRows next;  // of the task that comes after this one, which may be prefetched
};

struct CachedTask {  // one row; of attend_cached
  const void* q;
  const void* k;  // the table's first row, at the keys' columns
  const void* v;
  int64_t ldkv;
  const int32_t* index;
  int64_t length;
  const int32_t* next;  // of the row that comes after this one, which may be prefetched
  int64_t next_length;
  int64_t head_width, heads;
  void* y;
  float* weights;  // [length] or nullptr
  RelativeTask relative;
};

struct LstmTask {          // a LstmStep
  void* gates;             // [R, 4 width]
  const float* recurrent;  // [past, 4 width]
  const void* cell_before;
  void* cell;  // f32, or i16 where narrow_cell
  void* hidden;
  int64_t width, past;
  bool narrow_cell, tanh_output;
  float bound;  // 0: none
};

struct LstmBackwardTask {  // a LstmStepBackward
  void* gates;
  const float* cell_before;
  const float* cell;
  const void* dhidden;
  const float* drecurrent;
  float* dcell;
  int64_t width, past, next;
  bool tanh_output;
  float bound;
};

struct SsruTask {  // one sentence of an Ssru; rows are contiguous
  const void* candidate;
  const void* forget;
  int64_t rows, width;
  const float* before;  // may be null
  float* cell;
  void* hidden;         // forward
  const void* dhidden;  // backward
  void* dcandidate;
  void* dforget;
};

struct GlobalAttentionTask {  // one sentence; rows are contiguous
  const void* q;
  const void* k;
  const float* v;  // nullptr: dot products
  const void* memory;
  int64_t queries, keys, width, values;
  float* weights;         // [queries, keys]
  void* y;                // forward
  const void* dy;         // backward
  const float* dweights;  // [queries, keys] or nullptr
  void* dq;
  void* dk;
  void* dmemory;
  bool accumulate;  // dmemory
  float* dv;        // this sentence's share
};

struct LossTask {  // one row
  float* logits;   // overwritten
  int32_t target;  // -1: padding
  float smoothing, bound, weight;
  float* out;  // smoothed, nll, correct; for a pair also the mean of the KL divergences
  void* dlogits;
};

struct PanelProduct {  // y [rows, out] (+)= relu(x [rows, in] w + bias); x and the panels are of the table's type
  const void* x;
  int64_t in;  // even in bf16
  // [out / panel, in, panel], or in bf16 [out / panel, in / 2, panel, 2]; the last panel's columns beyond out are zero
  const void* panels;
  int64_t out;
  const float* bias;  // may be null
  bool relu, accumulate, wide;
  void* y;     // f32 where wide, else of the table's type
  int64_t ld;  // from row to row of y
};

struct WeightGradientTask {  // dw [rows, columns] (+)= a [depth, rows]^T c [depth, columns]; a and c are of the table's type
  const void *a, *c;
  int64_t lda, ldc;  // from row to row, elements
  int64_t depth, rows, columns;
  float* dw;
  int64_t ld;
  bool accumulate;
  float* column_sums;  // [columns] of c, or null
  bool add_column_sums;
};

struct AttentionLoops {
  int64_t (*scratch)(int64_t queries, int64_t keys, int64_t head_width);  // floats
  void (*forward)(const AttentionTask&, float* scratch);
  void (*backward)(const AttentionTask&, float* scratch);
};

// Activations have the table's type; everything marked float is f32 in both tables.
struct Table {
  // positions may be nullptr: no signal. Token `padding` makes zeros, other negative ones only the signal.
  void (*embed)(const int32_t* tokens, int32_t padding, const int32_t* positions, const float* table, const float* signal, float scale,
                const Mask&, void* y, int64_t D, int64_t begin, int64_t end);
  // Columns [begin, end) of all rows, so that threads never share an element.
  void (*embed_backward)(const int32_t* tokens, int64_t N, float scale, const Mask&, const void* dy, float* dtable, int64_t D,
                         int64_t begin, int64_t end);
  void (*layer_norm)(const void* x, const float* gamma, const float* beta, float epsilon, void* y, float* statistics, int64_t D,
                     int64_t begin, int64_t end);
  void (*layer_norm_backward)(const void* dy, const void* x, const float* gamma, const float* statistics, void* dx, bool accumulate,
                              float* dgamma_part, float* dbeta_part, int64_t D, int64_t begin, int64_t end);
  void (*add_dropout)(const void* x, const void* s, const Mask&, void* y, int64_t D, int64_t begin, int64_t end);
  void (*relu_dropout_backward)(const void* h, float scale, void* dh, int64_t begin, int64_t end);
  void (*activate)(const void* x, Activation, void* y, int64_t begin, int64_t end);
  void (*activate_backward)(const void* x, Activation, void* dy, int64_t begin, int64_t end);
  void (*add)(const void* x, void* y, int64_t begin, int64_t end);
  int64_t (*clamp)(const void* x, float bound, void* y, int64_t begin, int64_t end);
  void (*clamp_backward)(const void* x, float bound, const void* dy, void* dx, bool accumulate, int64_t begin, int64_t end);
  // Elements [begin, end) of the [R, width] matrix of cells.
  int64_t (*lstm_step)(const LstmTask&, int64_t begin, int64_t end);
  void (*lstm_step_backward)(const LstmBackwardTask&, int64_t begin, int64_t end);
  void (*ssru)(const SsruTask&);
  void (*ssru_backward)(const SsruTask&, float* scratch);  // scratch: width
  void (*column_sums)(const void* dy, float* sums, int64_t N, int64_t Q, int64_t begin, int64_t end);
  // q = round(127 x / a) within +-127, as int8 or (integers false) as float, with a = bound, or each row's largest magnitude if that is 0;
  // unit[n] = a / 127^2, or NaN for a row with a NaN.
  void (*quantize_rows)(const void* x, float bound, void* q, bool integers, float* unit, int64_t D, int64_t begin, int64_t end);
  // y (+)= relu(sums * unit[row] * scale[column] + bias[column]); sums are int32 or (integers false) float, y is float when `wide`, else of
  // the table's type, and may be the sums themselves; bias may be null.
  void (*scale_products)(const void* sums, bool integers, const float* unit, const float* scale, const float* bias, bool relu,
                         bool accumulate, void* y, bool wide, int64_t D, int64_t begin, int64_t end);
  AttentionLoops attention;
  AttentionLoops pair_attention;  // the same in products of bf16, for even widths of a head; null where the processor has none
  void (*attend_cached)(const CachedTask&, float* scratch);                                           // scratch: heads * (length + 1) + 16
  int64_t (*global_attention_scratch)(int64_t queries, int64_t keys, int64_t width, int64_t values);  // floats
  void (*global_attention)(const GlobalAttentionTask&, float* scratch);
  void (*global_attention_backward)(const GlobalAttentionTask&, float* scratch);
  void (*smoothed_loss)(const LossTask&, int64_t V);
  // Two rows that are one target position in two passes (LossRows::r_drop), whose logits are kept.
  void (*paired_loss)(const LossTask (&pair)[2], int64_t V, float r_drop);
  // A row of a LogitsShard; t.target is the target's column, or -1 if another worker has it.
  void (*shard_exponentials)(const LossTask& t, int64_t n, float* top, float* sums);
  // Its gradient from the exponentials e: weight * probability = scale * e.
  void (*shard_gradient)(const LossTask& t, int64_t n, float scale, int64_t vocabulary);
  // Updates what Backend::top_logits gives for the columns before them by columns [seen, seen + n) of a row, whose logits are z.
  void (*top_logits)(const float* z, int64_t n, int64_t seen, int64_t k, float* values, int32_t* indices, double* denominator);
  int32_t (*sample)(const float* logits, int64_t V, double uniform);
  // Matrix products with f32 sums; null in bf16 where the processor has no instruction for them. Gradients of weights are always null
  // in f32.
  int64_t (*panel_width)();
  // Panel p of `panels` from a weight [in, out], or of its transpose [out, in].
  void (*pack_weight)(const float* w, bool transposed, int64_t in, int64_t out, int64_t p, void* panels);
  void (*multiply)(const PanelProduct&, int64_t begin, int64_t end, int64_t first_panel, int64_t last_panel);  // of rows and panels
  int64_t (*weight_gradient_scratch)(int64_t rows, int64_t columns);                                           // floats
  void (*weight_gradient)(const WeightGradientTask&, float* scratch);
  // bf16: as many instructions of products of bf16 (pairs) or of f32 as fast as they go, twelve a step.
  void (*spin)(bool pairs, int64_t steps);
  double (*sum_of_squares)(const float* x, int64_t begin, int64_t end);
  // Elements [begin, end) by the F32 of the OptimizerStep of that index.
  void (*optimizer_steps[std::variant_size_v<OptimizerStep>])(const void* numbers, float* value, const float* gradient,
                                                              float* const* states, int64_t begin, int64_t end);
  void (*moving_average)(const float* value, float* average, float decay, int64_t begin, int64_t end);
};

namespace v2 {
const Table& table(DType activation);
}
namespace v3 {
const Table& table(DType activation);
}
namespace v4 {
const Table& table(DType activation);
}
namespace v4_bf16 {
const Table& table(DType activation);
}
namespace neon {
const Table& table(DType activation);
}

}  // namespace starling::kernels
