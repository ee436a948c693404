#include "train/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace starling {

Replica::Replica(Model& model, const StepOptions& options)
    : model_(model), options_(options), optimizer_(model.parameters().backend(), options.optimizer, model.parameters().values().count()) {
  if (options.optimizer.ema > 0) {
    average_ = Tensor(model.parameters().values().shape(), model.parameters().values().dtype());
    std::memcpy(average_.raw(), model.parameters().values().raw(), average_.bytes());
  }
}

StepResult Replica::step(std::span<const Batch> micro_batches) {
  ParameterStore& parameters = model_.parameters();
  Backend& backend = parameters.backend();
  const int64_t update = optimizer_.updates() + 1;
  StepResult result;
  parameters.begin_gradients();
  for (const Batch& batch : micro_batches) {
    arena_.release({});
    Tape tape(parameters, arena_, true, options_.seed, static_cast<uint64_t>(update));
    const LossSums sums = model_.loss(tape, batch, options_.label_smoothing);
    if (!std::isfinite(sums.smoothed))
      throw Error(
          fmt::format("the loss of epoch {}, batch {} (update {}) is not finite; nothing was updated. The latest checkpoint is intact: "
                      "continue from it with a lower train.learning-rate or longer train.warmup, or with --train.precision f32",
                      batch.epoch + 1, batch.index, update));
    tape.backward();
    result.sums.smoothed += sums.smoothed, result.sums.nll += sums.nll;
    result.sums.tokens += sums.tokens, result.sums.correct += sums.correct;
    result.source_tokens += batch.source.count(), result.sentences += batch.source.sentences();
  }
  parameters.complete_gradients();
  const double tokens = static_cast<double>(std::max<int64_t>(result.sums.tokens, 1));
  result.gradient_norm = std::sqrt(backend.sum_of_squares(parameters.gradients())) / tokens;
  if (!std::isfinite(result.gradient_norm))
    throw Error(
        fmt::format("the gradient of epoch {}, batch {} (update {}) is not finite; nothing was updated. The latest checkpoint is intact: "
                    "continue from it with a lower train.learning-rate or longer train.warmup, or with --train.precision f32",
                    micro_batches.front().epoch + 1, micro_batches.front().index, update));
  const double clip = options_.optimizer.clip_norm;
  const double factor = clip > 0 && result.gradient_norm > clip ? clip / result.gradient_norm : 1.0;
  result.learning_rate = learning_rate(options_.optimizer, update, options_.max_steps);
  optimizer_.begin_update();
  optimizer_.update(parameters.values(), parameters.gradients(), factor / tokens, result.learning_rate);
  // The average follows closely at first: a decay of (1 + t) / (10 + t) until the asked-for one is reached.
  if (average_)
    backend.moving_average(parameters.values(), average_,
                           std::min(options_.optimizer.ema, (1.0 + static_cast<double>(update)) / (10.0 + static_cast<double>(update))));
  parameters.changed();
  return result;
}

SwappedParameters::SwappedParameters(ParameterStore& store, const Tensor& other) : store_(store), other_(other) {
  if (other_) swap();
}
SwappedParameters::~SwappedParameters() {
  if (other_) swap();
}
void SwappedParameters::swap() {
  std::swap_ranges(store_.values().raw(), store_.values().raw() + store_.values().bytes(), other_.raw());
  store_.changed();
}

}  // namespace starling
