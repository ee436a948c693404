// Tasks of rows.cu and norm.cu: embeddings, norms, dropout, and row-wise or elementwise ops. The ops are in backend/backend.h.
#pragma once

#include "backend/activation.h"
#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

struct Embed {
  const int32_t *tokens, *positions;  // [rows]; positions may be null
  const float *table, *signal;        // [V, columns]; [positions, columns], the sinusoids
  float scale;
  Mask mask;
  void* y;
  int64_t rows, columns;
  int32_t padding;  // the token that makes zeros; other negative ones make only the sinusoid
};
void embed(Type, const Embed&, cudaStream_t);

// table[token[g]] += scale times the sum over the rows order[first[g]], ..., order[first[g + 1] - 1], in this order; or, if part[g] is not
// negative, sums[part[g]] = this sum.
struct EmbedBackward {
  const int32_t *token, *first, *order, *part;  // [groups], [groups + 1], [first[groups]], [groups]
  int64_t groups;
  float scale;
  Mask mask;
  const void* dy;
  float *table, *sums;
  int64_t columns;
};
void embed_backward(Type, const EmbedBackward&, cudaStream_t);
// table[token[g]] += scale * (sums[first[g]] + ... + sums[first[g + 1] - 1]), in this order.
struct AddToTable {
  const int32_t *token, *first;
  int64_t groups;
  float scale;
  const float* sums;
  float* table;
  int64_t columns;
};
void add_to_table(const AddToTable&, cudaStream_t);

struct LayerNorm {
  const void* x;
  const float *gamma, *beta;
  float epsilon;
  void* y;
  float* statistics;
  int64_t rows, columns;
};
void layer_norm(Type, const LayerNorm&, cudaStream_t);

struct LayerNormBackward {
  const void *dy, *x;
  const float *gamma, *statistics;
  void* dx;
  bool accumulate;
  float* parts;  // out: [norm_parts(rows), 2, columns], the parts of dgamma and dbeta
  int64_t rows, columns;
};
int64_t norm_parts(int64_t rows);
void layer_norm_backward(Type, const LayerNormBackward&, cudaStream_t);

// sums[c] over x [rows, columns], in two steps: into parts [sum_parts(rows), columns], then the parts. With h, x *= factor where h > 0,
// else 0, before it is added.
struct ColumnSums {
  void* x;
  float* parts;
  int64_t rows, columns;
  const void* h = nullptr;
  float factor = 1;
  bool aligned = false;  // set by the launcher
};
int64_t sum_parts(int64_t rows);
void column_sums(Type, const ColumnSums&, cudaStream_t);
// y[c] = (or +=) the sum over parts of x[part * columns + c]; those from `half` on go to second[c - half].
struct AddParts {
  const float* x;
  int64_t parts, columns;
  float* y;
  bool accumulate;
  int64_t half = 0;  // 0: there is no second
  float* second = nullptr;
};
void add_parts(const AddParts&, cudaStream_t);
// *sum += parts[0] + parts[1] + ...: integers, whose sum is exact in any order.
struct AddCounts {
  const double* parts;
  int64_t count;
  double* sum;
};
void add_counts(const AddCounts&, cudaStream_t);

struct AddDropout {
  const void *x, *s;  // x may be null
  Mask mask;
  void* y;  // may be x
  int64_t rows, columns;
};
void add_dropout(Type, const AddDropout&, cudaStream_t);

struct Elements {
  const void* x;
  void* y;
  int64_t count;
  float factor = 1;
  bool aligned = false;  // set by the launcher
};
void add(Type, const Elements&, cudaStream_t);                            // y += x
void relu_dropout_backward(Type, const Elements&, cudaStream_t);          // y *= factor where x > 0, else 0
void activate(Type, Activation, const Elements&, cudaStream_t);           // y = activation(x)
void activate_backward(Type, Activation, const Elements&, cudaStream_t);  // y *= activation'(x)
void convert(Type from, Type to, const Elements&, cudaStream_t);          // y = x

// y[to[r], to_column ...] = (or +=) x[from[r], from_column ...], rows of `width` elements. Without a list, row r itself; a negative `from`
// means zeros.
struct CopyRows {
  const void* x;
  int64_t x_stride, x_column;
  const int32_t* from;
  void* y;
  int64_t y_stride, y_column;
  const int32_t* to;
  int64_t rows, width;
};
void copy_rows(int64_t element, const CopyRows&, cudaStream_t);  // elements of so many bytes
void add_rows(Type, const CopyRows&, cudaStream_t);

struct Clamp {
  const void* x;
  float bound;
  void* y;
  double* parts;  // [clamp_parts(count)], the numbers of elements beyond the bound
  int64_t count;
};
int64_t clamp_parts(int64_t count);
void clamp(Type, const Clamp&, cudaStream_t);
struct ClampBackward {
  const void* x;
  float bound;
  const void* dy;
  void* dx;
  bool accumulate;
  int64_t count;
};
void clamp_backward(Type, const ClampBackward&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
