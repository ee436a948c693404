#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

namespace starling {

Optimizer::Optimizer(Backend& backend, const OptimizerOptions& options, std::vector<Range> owned)
    : backend_(backend),
      options_(options),
      owned_(std::move(owned)),
      first_({total(owned_)}, backend.parameter()),
      second_({total(owned_)}, backend.parameter()) {}

void Optimizer::update(const Tensor& values, const Tensor& gradients, int64_t begin, int64_t end, double gradient_scale, double rate) {
  if (begin == end) return;
  int64_t at = 0;  // of the range's state
  auto range = owned_.begin();
  while (range != owned_.end() && range->end <= begin) at += range->count(), ++range;
  CHECK(range != owned_.end() && range->begin <= begin && end <= range->end, "elements {} to {} are not owned here", begin, end);
  at += begin - range->begin;
  const Shape shape{end - begin};
  backend_.adam(values.slice(begin, shape), gradients.slice(begin, shape), first_.slice(at, shape), second_.slice(at, shape),
                {rate, options_.beta1, options_.beta2, options_.epsilon, options_.weight_decay, options_.optimizer == "adamw",
                 gradient_scale, updates_});
}

double learning_rate(const OptimizerOptions& o, int64_t step, int64_t max_steps) {
  const double t = static_cast<double>(std::max<int64_t>(step, 1)), warmup = static_cast<double>(o.warmup);
  if (t < warmup) return o.learning_rate * t / warmup;
  if (o.schedule == "constant") return o.learning_rate;
  if (o.schedule == "inverse-sqrt") return o.learning_rate * std::sqrt(std::max(warmup, 1.0) / t);
  if (o.schedule == "step")
    return o.learning_rate * std::pow(o.decay_factor, std::floor((t - warmup) / static_cast<double>(o.decay_every)));
  const double span = std::max(1.0, static_cast<double>(max_steps) - warmup), done = std::min(1.0, (t - warmup) / span);
  const double cosine = 0.5 * (1 + std::cos(3.141592653589793 * done));
  return o.learning_rate * (o.final_rate + (1 - o.final_rate) * cosine);
}

}  // namespace starling
