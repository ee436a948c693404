// Tasks of optimizer_steps.cu: the optimizers' steps over ranges of the flat buffers, and the squares of gradients. The ops are in
// backend/backend.h.
#pragma once

#include "backend/cuda/kernels/tasks.h"
#include "backend/optimizer_steps.h"

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

struct StepTensors {
  float* value;
  const float* gradient;
  float* states[kMostStates];
  int64_t count;
};
void optimizer_step(const StepTensors&, const OptimizerStep&, cudaStream_t);

struct MovingAverage {
  const float* value;
  float* average;
  float decay;
  int64_t count;
};
void moving_average(const MovingAverage&, cudaStream_t);

}  // namespace starling::STARLING_CUDA::kernels
