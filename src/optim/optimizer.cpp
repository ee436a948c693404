#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

namespace starling {

Optimizer::Optimizer(Backend& backend, const OptimizerOptions& options, std::vector<Range> owned, std::vector<MatrixPlace> matrices)
    : backend_(backend), options_(options), matrices_(std::move(matrices)), owned_(std::move(owned)) {
  for (int i = 0; i < traits_of(options_.optimizer).states(); ++i)
    states_[static_cast<size_t>(i)] = Tensor({total(owned_)}, backend.parameter(), backend.memory());
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (size_t i = 0; i < states_.size() && states_[i]; ++i) all.emplace_back(traits_of(options_.optimizer).state_names[i], states_[i]);
  return all;
}

void Optimizer::reset_moments() {
  for (const Tensor& state : states_)
    if (state) state.zero();
  moments_since_ = updates_;
}

double Optimizer::elements_moved() const {
  return traits_of(is_sgd(options_, of_the_run_ + 1) ? OptimizerKind::sgd : options_.optimizer).elements_moved();
}

std::span<const MatrixPlace> Optimizer::matrices_in(int64_t begin, int64_t end) const {
  if (is_sgd(options_, of_the_run_)) return {};
  const auto at = [&](int64_t offset) {
    return std::lower_bound(matrices_.begin(), matrices_.end(), offset, [](const MatrixPlace& m, int64_t o) { return m.offset < o; });
  };
  return {at(begin), at(end)};
}

double Optimizer::flops(int64_t begin, int64_t end) const {
  double sum = 0;
  for (const MatrixPlace& m : matrices_in(begin, end)) sum += Muon::flops(m);
  return sum;
}

void Optimizer::update(const Tensor& values, const Tensor& gradients, int64_t begin, int64_t end, double gradient_scale, double rate) {
  const auto flat = [&](int64_t from, int64_t to) {
    if (from >= to) return;
    const Shape shape{to - from};
    update_part(values.slice(from, shape), gradients.slice(from, shape), from, gradient_scale, rate);
  };
  const std::span<const MatrixPlace> matrices = matrices_in(begin, end);
  // A matrix that begins before the range belongs to the range that it begins in.
  const std::span<const MatrixPlace> before = matrices_in(0, begin);
  int64_t at = before.empty() ? begin : std::max(begin, before.back().offset + before.back().count());
  for (const MatrixPlace& m : matrices) {
    flat(at, m.offset);
    const Shape shape{m.rows, m.columns};
    muon_.update(m, values.slice(m.offset, shape), gradients.slice(m.offset, shape),
                 states_[0].slice(state_of(m.offset, m.offset + m.count()), shape),
                 {rate, options_.weight_decay, options_.muon_momentum, gradient_scale});
    at = m.offset + m.count();
  }
  flat(at, end);
}

int64_t Optimizer::state_of(int64_t begin, int64_t end) const {
  int64_t at = 0;  // where the range's state begins
  auto range = owned_.begin();
  while (range != owned_.end() && range->end <= begin) {
    at += range->count();
    ++range;
  }
  CHECK(range != owned_.end() && range->begin <= begin && end <= range->end, "elements {} to {} are not owned here", begin, end);
  return at + begin - range->begin;
}

OptimizerStep Optimizer::step(double scale, double rate) const {
  const OptimizerOptions& o = options_;
  switch (is_sgd(o, of_the_run_) ? OptimizerKind::sgd : o.optimizer) {
    case OptimizerKind::adam:
      return AdamStep{rate, o.beta1, o.beta2, o.epsilon, o.weight_decay, false, scale, updates_ - moments_since_};
    case OptimizerKind::adamw:
    case OptimizerKind::muon:  // of what is no matrix
      return AdamStep{rate, o.beta1, o.beta2, o.epsilon, o.weight_decay, true, scale, updates_ - moments_since_};
    case OptimizerKind::adagrad:
      return AdagradStep{rate, o.epsilon, o.weight_decay, scale};
    case OptimizerKind::sgd:
      return SgdStep{rate, o.weight_decay, scale};
  }
  CHECK(false, "optimizer {}", static_cast<int>(o.optimizer));
}

void Optimizer::update_part(const Tensor& values, const Tensor& gradients, int64_t begin, double gradient_scale, double rate) {
  const int64_t end = begin + values.count();
  if (begin == end) return;
  const int64_t at = state_of(begin, end);
  StepStates states = states_;
  for (Tensor& state : states)
    if (state) state = state.slice(at, Shape{end - begin});
  backend_.optimizer_step(values, gradients, states, step(gradient_scale, rate));
}

bool is_sgd(const OptimizerOptions& o, int64_t step) {
  return o.optimizer == OptimizerKind::sgd || (o.sgd_after > 0 && step > o.sgd_after);
}

double clip_norm(const OptimizerOptions& o, int64_t step) { return o.sgd_after > 0 && step > o.sgd_after ? o.sgd_clip_norm : o.clip_norm; }

namespace {

// The rate of the SGD that follows Adam, after `done` updates of it.
double rate_after_adam(const OptimizerOptions& o, int64_t done) {
  const int64_t first = o.sgd_halve_after > 0 ? o.sgd_halve_after : o.sgd_halve_every;
  if (o.sgd_halve_every == 0 || done < first) return o.sgd_learning_rate;
  return std::ldexp(o.sgd_learning_rate, -static_cast<int>(std::min<int64_t>(1 + (done - first) / o.sgd_halve_every, 1000)));
}

}  // namespace

Warmup warmup_of(const OptimizerOptions& o, double end) {
  const auto given = static_cast<double>(o.warmup), shorter = std::max(1.0, o.warmup_share * end);
  if (o.warmup_share == 0 || shorter >= given) return {given, o.learning_rate};
  constexpr auto shortest = static_cast<double>(kShortestWarmup);
  return {shorter, o.learning_rate * std::sqrt(std::max(given, shortest) / std::max(shorter, shortest))};
}

double learning_rate(const OptimizerOptions& o, int64_t step, double end) {
  if (o.sgd_after > 0 && step > o.sgd_after) return rate_after_adam(o, step - o.sgd_after - 1);
  const double t = static_cast<double>(std::max<int64_t>(step, 1));
  const auto [warmup, peak] = warmup_of(o, end);
  if (t < warmup) return peak * t / warmup;
  if (o.schedule == RateSchedule::constant) return peak;
  if (o.schedule == RateSchedule::inverse_sqrt) return peak * std::sqrt(std::max(warmup, 1.0) / t);
  if (o.schedule == RateSchedule::step)
    return peak * std::pow(o.decay_factor, std::floor((t - warmup) / static_cast<double>(o.decay_every)));
  const double begin = o.schedule == RateSchedule::wsd ? std::max(warmup, (1 - o.decay_share) * end) : warmup;
  const double done = std::clamp((t - begin) / std::max(1.0, end - begin), 0.0, 1.0);
  const double left = o.schedule == RateSchedule::cosine ? 0.5 * (1 + std::cos(3.141592653589793 * done)) : 1 - done;
  return peak * (o.final_rate + (1 - o.final_rate) * left);
}

}  // namespace starling
