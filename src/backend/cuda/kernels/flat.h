// Tasks of flat.cu: the arithmetic of strategies. The ops are in backend/flat.h; products and sums are rounded one by one, so that results
// are those of the host (host_flat.cpp) bit for bit.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

// sum = the sum of x[i] * y[i]: each piece is summed in order into parts [ordered_parts(count)], then the parts.
struct OrderedSum {
  const float *x, *y;
  double *parts, *sum;
  int64_t count;
};
int64_t ordered_parts(int64_t count);
void ordered_sum(const OrderedSum&, cudaStream_t);

struct Rescale {
  const float *v, *scale;
  const double* squares;  // of v
  float* y;
  int64_t count;
};
void rescale(const Rescale&, cudaStream_t);
struct RescaleBackward {
  const float *dy, *v, *scale;
  const double *squares, *along;  // of v; the sum of dy * v
  float *dv, *dscale;
  bool accumulate;
  int64_t count;
};
void rescale_backward(const RescaleBackward&, cudaStream_t);

// Guided attention (backend/flat.h); dp is zero before.
struct LinkLoss {
  const float* p;
  const int32_t* place;
  const float* weight;
  float* dp;
  double* sum;
  int64_t links;
};
void link_loss(const LinkLoss&, cudaStream_t);

struct Divide {
  float* x;
  float divisor;
  int64_t count;
};
void divide(const Divide&, cudaStream_t);
struct Scale {
  const float* x;
  float factor;
  float* y;
  bool accumulate;
  int64_t count;
};
void scale(const Scale&, cudaStream_t);

// Members have the meaning of the structs and arguments in backend/flat.h; null if those are empty.
struct Displacement {
  const float *value, *merged, *step;
  float momentum;
  float *displacement, *sent;
  int64_t count;
};
void displacement(const Displacement&, cudaStream_t);
struct OuterStep {
  const float* sum;
  float *value, *merged, *step;
  const float* sent;
  float rate, momentum, anchor, ahead;
  bool corrected;
  float keep;
  int64_t count;
};
void outer_step(const OuterStep&, cudaStream_t);
struct Compensate {
  float* gradient;
  const float *now, *then;
  float factor;
  int64_t count;
};
void compensate(const Compensate&, cudaStream_t);
struct Collect {
  const float* x;
  float* residual;
  float decay;
  float* velocity;
  float momentum;
  float* y;
  double* bad;
  int64_t first, count;
};
void collect(const Collect&, cudaStream_t);

// Rows on the wire, [rows, front + columns].
struct PackRows {
  const float* x;
  const int32_t *from, *number;  // [rows]; `from` may be null: row i itself
  float* wire;
  int64_t rows, front, columns;
};
void pack_rows(const PackRows&, cudaStream_t);
// y[place[g]] += x[order[first[g]]], ..., x[order[first[g + 1] - 1]], in this order.
struct AddToRows {
  const float* x;
  int64_t x_stride;
  const int32_t *place, *first, *order;
  float* y;
  int64_t y_stride, groups, columns;
};
void add_to_rows(const AddToRows&, cudaStream_t);
// The numbers of rows on the wire; -1 for an invalid one.
struct RowNumbers {
  const float* wire;
  int32_t* numbers;  // [rows]
  int64_t rows, stride;
};
void row_numbers(const RowNumbers&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
