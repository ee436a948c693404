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

void CudaBackend::adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& s) {
  const int64_t n = count_of({value, gradient, m, v});
  const auto correction = [&](double beta) { return 1 - std::pow(beta, static_cast<double>(s.update)); };
  const auto decay = static_cast<float>(s.weight_decay);
  kernels::adam({at<float>(value), at<float>(gradient), at<float>(m), at<float>(v), static_cast<float>(s.rate), static_cast<float>(s.beta1),
                 static_cast<float>(s.beta2), static_cast<float>(s.epsilon), s.decoupled ? 0.0f : decay, s.decoupled ? decay : 0.0f,
                 static_cast<float>(s.scale), static_cast<float>(s.rate / correction(s.beta1)),
                 static_cast<float>(1 / std::sqrt(correction(s.beta2))), n},
                stream());
}

void CudaBackend::adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& s) {
  const int64_t n = count_of({value, gradient, v});
  kernels::adagrad({at<float>(value), at<float>(gradient), at<float>(v), static_cast<float>(s.rate), static_cast<float>(s.epsilon),
                    static_cast<float>(s.weight_decay), static_cast<float>(s.scale), n},
                   stream());
}

void CudaBackend::sgd(const Tensor& value, const Tensor& gradient, const SgdStep& s) {
  const int64_t n = count_of({value, gradient});
  kernels::sgd({at<float>(value), at<float>(gradient), static_cast<float>(s.rate), static_cast<float>(s.weight_decay),
                static_cast<float>(s.scale), n},
               stream());
}

void CudaBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  const int64_t n = count_of({value, average});
  kernels::moving_average({at<float>(value), at<float>(average), static_cast<float>(decay), n}, stream());
}

}  // namespace starling::STARLING_CUDA
