// The vectorised loops, as a table of functions for one instruction set and one activation type. kernels.cpp is compiled once per
// instruction set; dispatch.cpp picks the best at run time. A kernel works on a range and knows nothing of threads.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace starling::kernels {

struct Mask {  // a Dropout without its standard-library parts
  uint64_t key = 0;
  uint32_t threshold = 0;  // 0: no dropout
  float scale = 1;
  const uint32_t* sentence = nullptr;
  const uint32_t* position = nullptr;
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
};

// Activations are of the table's type; everything marked float is f32 in both tables.
struct Table {
  void (*embed)(const int32_t* tokens, const int32_t* positions, const float* table, const float* signal, float scale, const Mask&, void* y,
                int64_t D, int64_t begin, int64_t end);
  // Columns [begin, end) of all rows, so that threads never share an element.
  void (*embed_backward)(const int32_t* tokens, int64_t N, float scale, const Mask&, const void* dy, float* dtable, int64_t D,
                         int64_t begin, int64_t end);
  void (*layer_norm)(const void* x, const float* gamma, const float* beta, void* y, float* statistics, int64_t D, int64_t begin,
                     int64_t end);
  void (*layer_norm_backward)(const void* dy, const void* x, const float* gamma, const float* statistics, void* dx, bool accumulate,
                              float* dgamma_part, float* dbeta_part, int64_t D, int64_t begin, int64_t end);
  void (*add_dropout)(const void* x, const void* s, const Mask&, void* y, int64_t D, int64_t begin, int64_t end);
  void (*relu_dropout_backward)(const void* h, float scale, void* dh, int64_t begin, int64_t end);
  void (*add)(const void* x, void* y, int64_t begin, int64_t end);
  void (*column_sums)(const void* dy, float* sums, int64_t N, int64_t Q, int64_t begin, int64_t end);
  int64_t (*attention_scratch)(int64_t queries, int64_t keys, int64_t head_width);  // floats
  void (*attention)(const AttentionTask&, float* scratch);
  void (*attention_backward)(const AttentionTask&, float* scratch);
  void (*attend_cached)(const void* q, const void* kv, int64_t ldkv, int64_t k_column, int64_t v_column, const int32_t* index,
                        int64_t length, int64_t head_width, int64_t heads, void* y, float* scratch);
  // One row; logits are overwritten. out[3] = smoothed, nll, correct.
  void (*smoothed_loss)(float* logits, int64_t V, int32_t target, float smoothing, float* out, void* dlogits);
  void (*log_softmax_top_k)(const float* logits, int64_t V, int64_t k, float* values, int32_t* indices);
  double (*sum_of_squares)(const float* x, int64_t begin, int64_t end);
  void (*adam)(float* value, const float* gradient, float* m, float* v, float rate, float beta1, float beta2, float epsilon,
               float coupled_decay, float decoupled_decay, float scale, float correction1, float correction2, int64_t begin, int64_t end);
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

}  // namespace starling::kernels
