// The optimizers' steps over ranges of the flat buffers, and the norm that gradients are clipped by.
#include "backend/cuda/kernels/optimizer_steps.h"

#include <cmath>

#include "backend/cuda/cuda_backend.h"

namespace starling::STARLING_CUDA {
namespace {

// The elements of the first, which all have.
int64_t count_of(std::initializer_list<Tensor> tensors) {
  const Tensor& first = *tensors.begin();
  for (const Tensor& t : tensors)
    CHECK(t.count() == first.count() && t.dtype() == DType::f32, "a step on {} {} and {} {}", name_of(first.dtype()), first.shape().text(),
          name_of(t.dtype()), t.shape().text());
  return first.count();
}

}  // namespace

void CudaBackend::sum_of_squares(const Tensor& x, const Tensor& sum) {
  const int64_t n = count_of({x});
  kernels::sum_of_squares({at<float>(x), scratch<double>(0, kernels::square_parts(n)), at<double>(sum), n}, stream());
}

void CudaBackend::optimizer_step(const Tensor& value, const Tensor& gradient, const StepStates& states, const OptimizerStep& step) {
  kernels::StepTensors t{at<float>(value), at<float>(gradient), {}, count_of({value, gradient})};
  const auto count = std::visit([](const auto& s) { return static_cast<size_t>(s.kStates); }, step);
  for (size_t i = 0; i < count; ++i) count_of({value, states[i]}), t.states[i] = at<float>(states[i]);
  kernels::optimizer_step(t, step, stream());
}

void CudaBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  const int64_t n = count_of({value, average});
  kernels::moving_average({at<float>(value), at<float>(average), static_cast<float>(decay), n}, stream());
}

}  // namespace starling::STARLING_CUDA
