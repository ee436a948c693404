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

void CpuBackend::adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& s) {
  const auto correction = [&](double beta) { return static_cast<float>(1 - std::pow(beta, static_cast<double>(s.update))); };
  ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
    kernels_.adam(value.data<float>(), gradient.data<float>(), m.data<float>(), v.data<float>(), static_cast<float>(s.rate),
                  static_cast<float>(s.beta1), static_cast<float>(s.beta2), static_cast<float>(s.epsilon),
                  s.decoupled ? 0.0f : static_cast<float>(s.weight_decay), s.decoupled ? static_cast<float>(s.weight_decay) : 0.0f,
                  static_cast<float>(s.scale), correction(s.beta1), correction(s.beta2), begin, end);
  });
}

void CpuBackend::adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& s) {
  ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
    kernels_.adagrad(value.data<float>(), gradient.data<float>(), v.data<float>(), static_cast<float>(s.rate),
                     static_cast<float>(s.epsilon), static_cast<float>(s.weight_decay), static_cast<float>(s.scale), begin, end);
  });
}

void CpuBackend::sgd(const Tensor& value, const Tensor& gradient, const SgdStep& s) {
  ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
    kernels_.sgd(value.data<float>(), gradient.data<float>(), static_cast<float>(s.rate), static_cast<float>(s.weight_decay),
                 static_cast<float>(s.scale), begin, end);
  });
}

void CpuBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
    kernels_.moving_average(value.data<float>(), average.data<float>(), static_cast<float>(decay), begin, end);
  });
}

}  // namespace starling
