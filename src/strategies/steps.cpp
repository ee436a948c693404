#include "strategies/steps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace starling {

void write_sums(const StepSums& sums, std::span<double> numbers) {
  auto to = numbers.begin();
  StepSums::each(sums, [&](const double& x) { *to++ = x; });
}

StepSums read_sums(std::span<const double> numbers) {
  StepSums sums;
  auto from = numbers.begin();
  StepSums::each(sums, [&](double& x) { x = *from++; });
  return sums;
}

StepSums& operator+=(StepSums& a, const StepSums& b) {
  double more[kSums];
  write_sums(b, more);
  const double* from = more;
  StepSums::each(a, [&](double& x) { x += *from++; });
  return a;
}

void refuse_step(Worker& worker, const std::string& what) {
  const bool narrow = worker.parameters().backend().activation() == DType::bf16;
  throw DivergedError(
      fmt::format("{} is not finite in {}; no parameter was updated, and the checkpoints are as they were. Continue with a lower "
                  "train.learning-rate, a longer train.warmup or with train.clip-norm 1{}; if this very batch fails again, look at its "
                  "lines in the training data",
                  what, worker.step_name(), narrow ? ", or with train.precision f32 in place of bf16" : ""));
}

Tensor working_tensor(Worker& w, int64_t count, DType type) { return Tensor({count}, type, w.parameters().backend().memory()); }

Tensor view(const Tensor& flat, const Range& r) { return flat.slice(r.begin, Shape{r.count()}); }

double number(const Tensor& x) {
  double n = 0;
  if (x.has_elements()) x.read<double>({&n, 1});
  return n;
}

void add_squares(Worker& w, const Tensor& x, const Tensor& sum) {
  w.clock().spend({Work::memory, 0, static_cast<double>(x.bytes())}, [&] { w.parameters().backend().sum_of_squares(x, sum); });
}

double sum_of_squares(Worker& w, const Tensor& x) {
  const Tensor sum = working_tensor(w, 1, DType::f64);
  add_squares(w, x, sum);
  return number(sum);
}

double gradient_norm(Worker& w, double squares, const StepTotals& totals) {
  const double norm = std::sqrt(squares) / w.gradient_divisor(totals);
  if (!std::isfinite(norm)) refuse_step(w, "the gradient");
  return norm;
}

double own_gradient_norm(Worker& w, const StepTotals& totals) {
  const Tensor squares({1}, DType::f64);
  doubles_of(squares)[0] = sum_of_squares(w, w.parameters().gradients());
  w.sum_over_replica(squares);
  return gradient_norm(w, doubles_of(squares)[0], totals);
}

StepSums own_sums(Worker& w) {
  const Tensor numbers({kSums}, DType::f64);
  write_sums(w.sums(), doubles_of(numbers));
  w.sum_over_replica(numbers);
  return read_sums(doubles_of(numbers));
}

StepResult update_replica(Worker& w, const StepSums& sums, double norm) {
  ParameterStore& parameters = w.parameters();
  Optimizer& optimizer = w.optimizer();
  StepResult result;
  result.gradient_norm = norm;
  const Worker::UpdatePlan plan = w.plan_update(sums, result.gradient_norm);
  result.learning_rate = plan.rate;
  const double moved = optimizer.elements_moved();
  optimizer.begin_update();
  w.clock().spend({Work::update, optimizer.flops(0, parameters.flat_count()), moved * static_cast<double>(parameters.values().bytes())},
                  [&] { optimizer.update(parameters.values(), parameters.gradients(), plan.scale, plan.rate); });
  parameters.changed();
  return result;
}

std::vector<Pending> all_reduce_in_pieces(Communicator& comm, const Tensor& x, double mib, bool narrow) {
  const int64_t piece = std::max<int64_t>(16, static_cast<int64_t>(mib * (1 << 20)) / size_of(x.dtype()) / 16 * 16);
  std::vector<Pending> pending;
  for (int64_t at = 0; at < x.count(); at += piece) {
    const Tensor y = x.slice(at, Shape{std::min(piece, x.count() - at)});
    pending.push_back(narrow ? comm.all_reduce_bf16(y) : comm.all_reduce(y));
  }
  return pending;
}

void divide_by(Worker& w, const Tensor& x, int n) {
  w.clock().spend({Work::memory, 0, 2.0 * static_cast<double>(x.bytes())}, [&] { w.parameters().backend().flat().divide(x, n); });
}

}  // namespace starling
