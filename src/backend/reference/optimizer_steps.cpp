// The optimizers' steps over ranges of the flat buffers, and the norm that gradients are clipped by.
#include <cmath>

#include "backend/reference/reference_backend.h"

namespace starling {

void ReferenceBackend::sum_of_squares(const Tensor& x, const Tensor& sum) {
  double squares = 0;
  for (int64_t i = 0; i < x.count(); ++i) squares += x.data<double>()[i] * x.data<double>()[i];
  add_number(sum, squares);
}

void ReferenceBackend::adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& s) {
  const double c1 = 1 - std::pow(s.beta1, s.update), c2 = 1 - std::pow(s.beta2, s.update);
  for (int64_t i = 0; i < value.count(); ++i) {
    double& x = value.data<double>()[i];
    const double g = gradient.data<double>()[i] * s.scale + (s.decoupled ? 0 : s.weight_decay * x);
    double& first = m.data<double>()[i];
    double& second = v.data<double>()[i];
    first = s.beta1 * first + (1 - s.beta1) * g;
    second = s.beta2 * second + (1 - s.beta2) * g * g;
    x -= s.rate * (first / c1 / (std::sqrt(second / c2) + s.epsilon) + (s.decoupled ? s.weight_decay * x : 0));
  }
}

void ReferenceBackend::adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& s) {
  for (int64_t i = 0; i < value.count(); ++i) {
    double& x = value.data<double>()[i];
    const double g = gradient.data<double>()[i] * s.scale + s.weight_decay * x;
    double& squares = v.data<double>()[i];
    squares += g * g;
    x -= s.rate * g / (std::sqrt(squares) + s.epsilon);
  }
}

void ReferenceBackend::sgd(const Tensor& value, const Tensor& gradient, const SgdStep& s) {
  for (int64_t i = 0; i < value.count(); ++i) {
    double& x = value.data<double>()[i];
    x -= s.rate * (s.scale * gradient.data<double>()[i] + s.weight_decay * x);
  }
}

void ReferenceBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  for (int64_t i = 0; i < value.count(); ++i)
    average.data<double>()[i] = decay * average.data<double>()[i] + (1 - decay) * value.data<double>()[i];
}

}  // namespace starling
