// The optimizers' steps over ranges of the flat buffers, and the norm that gradients are clipped by.
#include <cmath>
#include <span>

#include "backend/reference/reference_backend.h"

namespace starling {

void ReferenceBackend::sum_of_squares(const Tensor& x, const Tensor& sum) {
  double squares = 0;
  for (int64_t i = 0; i < x.count(); ++i) squares += x.data<double>()[i] * x.data<double>()[i];
  add_number(sum, squares);
}

namespace {

void take(const AdamStep& s, std::span<double> value, const double* gradient, const std::array<double*, kMostStates>& states) {
  const double c1 = 1 - std::pow(s.beta1, s.update), c2 = 1 - std::pow(s.beta2, s.update);
  for (size_t i = 0; i < value.size(); ++i) {
    double &x = value[i], &first = states[0][i], &second = states[1][i];
    const double g = gradient[i] * s.scale + (s.decoupled ? 0 : s.weight_decay * x);
    first = s.beta1 * first + (1 - s.beta1) * g;
    second = s.beta2 * second + (1 - s.beta2) * g * g;
    x -= s.rate * (first / c1 / (std::sqrt(second / c2) + s.epsilon) + (s.decoupled ? s.weight_decay * x : 0));
  }
}

void take(const AdagradStep& s, std::span<double> value, const double* gradient, const std::array<double*, kMostStates>& states) {
  for (size_t i = 0; i < value.size(); ++i) {
    double &x = value[i], &squares = states[0][i];
    const double g = gradient[i] * s.scale + s.weight_decay * x;
    squares += g * g;
    x -= s.rate * g / (std::sqrt(squares) + s.epsilon);
  }
}

void take(const SgdStep& s, std::span<double> value, const double* gradient, const std::array<double*, kMostStates>&) {
  for (size_t i = 0; i < value.size(); ++i) value[i] -= s.rate * (s.scale * gradient[i] + s.weight_decay * value[i]);
}

}  // namespace

void ReferenceBackend::optimizer_step(const Tensor& value, const Tensor& gradient, const StepStates& states, const OptimizerStep& step) {
  const std::span<double> values{value.data<double>(), static_cast<size_t>(value.count())};
  std::visit([&](const auto& s) { take(s, values, gradient.data<double>(), states_of<double>(s, value, states)); }, step);
}

void ReferenceBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  for (int64_t i = 0; i < value.count(); ++i)
    average.data<double>()[i] = decay * average.data<double>()[i] + (1 - decay) * value.data<double>()[i];
}

}  // namespace starling
