// Tasks of lstm.cu, ssru.cu and global_attention.cu. The ops are in backend/backend.h.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

struct LstmStep {
  void* gates;             // [rows, 4 width]
  const float* recurrent;  // [>= past, 4 width]
  const void* cell_before;
  void *cell, *hidden;
  int64_t rows, width, past;
  bool narrow_cell;  // cells are 16-bit integers in units of bound / 32767, else f32
  bool tanh_output;
  float bound;    // 0: none
  double* parts;  // how many cells each block clipped, lstm_parts of them; or null
};
int64_t lstm_parts(int64_t elements);
void lstm_step(Type, const LstmStep&, cudaStream_t);

struct LstmStepBackward {
  void* gates;
  const float *cell_before, *cell;
  const void* dhidden;
  const float* drecurrent;
  float* dcell;
  int64_t rows, width, past, next;
  bool tanh_output;
  float bound;
};
void lstm_step_backward(Type, const LstmStepBackward&, cudaStream_t);

struct Ssru {  // sentence b has the rows [offsets[b], offsets[b + 1])
  const void *candidate, *forget;
  const int32_t* offsets;
  const float* before;  // may be null
  float* cell;
  void* hidden;  // forward
  int64_t sentences, width;
};
void ssru(Type, const Ssru&, cudaStream_t);
struct SsruBackward {
  const void *candidate, *forget;
  const int32_t* offsets;
  const float* cell;
  const void* dhidden;
  void *dcandidate, *dforget;
  int64_t sentences, width;
};
void ssru_backward(Type, const SsruBackward&, cudaStream_t);

struct GlobalAttention {
  const void *q, *k, *memory;  // [, width], [, width], [, columns]
  const float* v;              // [width], or null: dot product
  const int32_t *query, *key;  // [sentences + 1]
  int64_t sentences, width, columns;
  int64_t longest_query, longest_key;  // tokens
  int64_t idle_queries, idle_keys;     // rows that belong to no sentence
};
struct GlobalAttentionForward {
  GlobalAttention of;
  void* y;         // [, columns]
  float* weights;  // by sentence, then query, then key
};
void global_attention(Type, const GlobalAttentionForward&, cudaStream_t);

struct GlobalAttentionBackward {
  GlobalAttention of;
  const float* weights;
  const void* dy;
  const float* dweights;  // a further gradient of the weights, or null
  float* dscores;         // working memory, as many as weights
  void *dq, *dk, *dmemory;
  bool accumulate_memory;
  float* dv_parts;  // [dv_parts(...), width]: what each block adds to the gradient of v; null without v
};
int64_t dv_parts(int64_t sentences, int64_t longest_query);
void global_attention_backward(Type, const GlobalAttentionBackward&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
