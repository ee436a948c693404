// For implementations of ops: numbers that are written to tensors in host memory.
#pragma once

#include <cmath>

#include "backend/backend.h"

namespace starling {

// to[0] += x, unless `to` is empty.
inline void add_number(const Tensor& to, double x) {
  if (to) to.data<double>()[0] += x;
}

// The addresses of the step's states, of which each element of value has one.
template <class T, class Step>
std::array<T*, kMostStates> states_of(const Step&, const Tensor& value, const StepStates& states) {
  std::array<T*, kMostStates> at{};
  for (size_t i = 0; i < Step::kStates; ++i) {
    CHECK(states[i].count() == value.count(), "{} {} with a state {}", Step::kName, value.shape().text(), states[i].shape().text());
    at[i] = states[i].template data<T>();
  }
  return at;
}

// Records the result of a search for elements that are not finite: the index of one, or a negative number.
inline void note_bad(const Tensor& bad, int64_t index) {
  if (index >= 0) bad.data<double>()[0] = static_cast<double>(index + 1);
}

// Computes smoothed, nll and correct of a row from its largest logit and the sums of exponentials, of logits and of the target's logit.
template <class T>
void write_row_loss(T top, const T* sums, int32_t target, T smoothing, T vocabulary, T* out) {
  const T log_sum = top + std::log(sums[0]), nll = log_sum - sums[2];
  out[0] = target < 0 ? 0 : (1 - smoothing) * nll + smoothing * (log_sum - sums[1] / vocabulary);
  out[1] = target < 0 ? 0 : nll;
  out[2] = target >= 0 && sums[2] == top;
}

// Backend::loss_sums, in the order of the rows.
template <class T>
void add_loss_sums(const T* row_loss, const LossRows& rows, double* sums) {
  double smoothed = 0, nll = 0, correct = 0, consistency = 0;
  for (size_t n = 0; n < rows.targets.size(); ++n) {
    if (rows.targets[n] < 0) continue;
    const T* const row = row_loss + rows.columns() * static_cast<int64_t>(n);
    const double weight = rows.weights.empty() ? 1.0 : static_cast<double>(rows.weights[n]);
    smoothed += static_cast<double>(row[0]) * weight;
    nll += static_cast<double>(row[1]);
    correct += row[2] > 0;
    if (rows.r_drop > 0) consistency += static_cast<double>(row[3]) * weight;
  }
  sums[0] += smoothed;
  sums[1] += nll;
  sums[2] += correct;
  if (rows.r_drop > 0) sums[3] += consistency;
}

}  // namespace starling
