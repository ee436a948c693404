// The optimizers' steps over ranges of the flat buffers, and the norm that gradients are clipped by.
#include <cmath>

#include "backend/cpu/cpu_backend.h"

namespace starling {

void CpuBackend::sum_of_squares(const Tensor& x, const Tensor& sum) {
  std::vector<double> parts(threads_, 0.0);
  fixed_ranges(x.count(), 4096,
               [&](int64_t begin, int64_t end, int t) { parts[t] = kernels_.sum_of_squares(x.data<float>(), begin, end); });
  double total = 0;
  for (double p : parts) total += p;
  add_number(sum, total);
}

void CpuBackend::optimizer_step(const Tensor& value, const Tensor& gradient, const StepStates& states, const OptimizerStep& step) {
  std::visit(
      [&](const auto& s) {
        const auto numbers = s.f32();
        const auto at = states_of<float>(s, value, states);
        ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
          kernels_.optimizer_steps[step.index()](&numbers, value.data<float>(), gradient.data<float>(), at.data(), begin, end);
        });
      },
      step);
}

void CpuBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
    kernels_.moving_average(value.data<float>(), average.data<float>(), static_cast<float>(decay), begin, end);
  });
}

}  // namespace starling
