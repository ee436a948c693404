// Tasks of output.cu and choice.cu: losses of rows of logits with their gradients, the best tokens, and samples. The ops are in
// backend/backend.h.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

// Logits of the tokens [first, first + columns) of a vocabulary. Each op uses some of these members.
struct Loss {
  float* logits;           // [rows, columns]; overwritten
  const int32_t* targets;  // [rows]
  const float* weights;    // [rows], or null
  float smoothing, bound;  // bound: infinite if there is none
  float r_drop;            // 0, or rows are pairs and losses have 4 columns
  float *top, *sums;       // [rows], [rows, 3]: only for shards
  const float* group_top;  // [rows]
  float* row_loss;         // [rows, 3 or 4]
  void* dlogits;           // [rows, columns], or null
  int64_t first, vocabulary, rows, columns;
};
// For a whole vocabulary. most_shared: the most bytes of shared memory that a block may have; if a row of logits does not fit, exponentials
// replace the logits in the card's memory.
void smoothed_loss(Type, const Loss&, int64_t most_shared, cudaStream_t);
// For pairs of rows (LossRows::r_drop), whose logits are kept.
void paired_loss(Type, const Loss&, cudaStream_t);
void shard_exponentials(const Loss&, cudaStream_t);
void rescale_shard(const Loss&, cudaStream_t);
void shard_loss(Type, const Loss&, cudaStream_t);

struct LossSums {
  const float* row_loss;  // [rows, columns]
  const int32_t* targets;
  const float* weights;  // or null
  double* sums;          // [columns]
  int64_t rows, columns;
};
void loss_sums(const LossSums&, cudaStream_t);

struct Best {
  const float* logits;  // [rows, columns]
  float* values;        // [rows, k]
  int32_t* indices;     // [rows, k]
  double* denominator;  // [rows, 2]: the largest logit, the sum of e^(logit - largest)
  int64_t rows, columns, k;
};
void best(const Best&, cudaStream_t);

struct Sample {
  const float* logits;    // [rows, columns]
  const double* uniform;  // [rows]
  int32_t* tokens;        // [rows]
  int64_t rows, columns;
};
void sample(const Sample&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
