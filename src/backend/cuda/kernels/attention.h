// Tasks of attention.cu (by sentence and head) and cached.cu (by row over a list of rows). The ops are in backend/backend.h.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

struct Relative {         // RelativeBins
  int64_t reach, stride;  // stride: of rows; 0 and none without relative positions
  const float* scores;
  void* mass;
  const float* dmass;
  void* dscores;
};

struct Attention {
  const void *q, *k, *v;  // the first element of each; rows are a stride apart
  int64_t q_stride, kv_stride;
  const int32_t *query, *key;                   // [sentences + 1]
  int64_t sentences, heads, first_head, width;  // width: of a head
  int64_t longest_query, longest_key;           // tokens
  int64_t idle;                                 // rows of y (or dq) that belong to no sentence
  bool causal;
  Mask mask;   // its key is the site's
  void* y;     // [rows, heads * width]
  float* lse;  // [rows, heads]
  Relative relative;
};
void attention(Type, const Attention&, cudaStream_t);
// Writes relative.mass, after attention() has written lse (relative.cu).
void relative_mass(Type, const Attention&, cudaStream_t);

struct AttentionBackward {
  Attention of;        // without y
  int64_t rows;        // of q and dq
  const void* dy;      // [rows, heads * width]
  void *dq, *dk, *dv;  // the first element of each
  int64_t dq_stride, dkv_stride;
  int64_t idle_keys;  // rows of dk and dv that belong to no sentence
  // Working memory for sentences with more keys than fit at once (many_keys): dots [dot_parts, rows, heads] and sums [rows, heads * width].
  float *dots, *sums;
};
bool many_keys(int64_t longest_key);
int64_t dot_parts(int64_t width);
void attention_backward(Type, const AttentionBackward&, cudaStream_t);

struct AttendCached {
  const void *q, *k, *v;  // the first element of each
  int64_t q_stride, kv_stride;
  const int32_t *index, *offsets;
  int64_t rows, heads, width;  // width: of a head
  void* y;                     // [rows, heads * width]
  float* weights;              // or null
  Relative relative;
};
void attend_cached(Type, const AttendCached&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
