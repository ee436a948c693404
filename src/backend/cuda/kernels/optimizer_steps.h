// Tasks of optimizer_steps.cu: the optimizers' steps over ranges of the flat buffers, and the squares of gradients. The ops are in
// backend/backend.h.
#pragma once

#include "backend/cuda/kernels/tasks.h"

namespace starling::STARLING_CUDA::kernels {

// sum += the squares of x: stretches of x are summed into parts [square_parts(count)], then the parts.
struct Squares {
  const float* x;
  double* parts;
  double* sum;
  int64_t count;
};
int64_t square_parts(int64_t count);
void sum_of_squares(const Squares&, cudaStream_t);

struct Adam {
  float* value;
  const float* gradient;
  float *m, *v;
  float rate, beta1, beta2, epsilon, coupled_decay, decoupled_decay, scale;
  float step, root;  // rate / (1 - beta1^update), 1 / sqrt(1 - beta2^update)
  int64_t count;
};
void adam(const Adam&, cudaStream_t);

struct Adagrad {
  float* value;
  const float* gradient;
  float* v;
  float rate, epsilon, weight_decay, scale;
  int64_t count;
};
void adagrad(const Adagrad&, cudaStream_t);

struct Sgd {
  float* value;
  const float* gradient;
  float rate, weight_decay, scale;
  int64_t count;
};
void sgd(const Sgd&, cudaStream_t);

struct MovingAverage {
  const float* value;
  float* average;
  float decay;
  int64_t count;
};
void moving_average(const MovingAverage&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
