#include "settings/batch_size_schedule.h"

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

// The batch doubles once the noise scale is this many times the doubled batch. The updates needed fall as 1 + scale / batch, and the tokens
// needed rise as 1 + batch / scale (McCandlish et al. 2018): by half at most.
constexpr double kNoiseOverBatch = 2;

}  // namespace

int64_t BatchSizeSchedule::planned_factor() const {
  int64_t factor = 1;
  for (const double share : train_.batch_doubles_at)
    if (static_cast<double>(taken_) >= share * static_cast<double>(end_)) factor *= 2;
  return factor;
}

int64_t BatchSizeSchedule::factor() const { return std::max(planned_factor(), noise_factor_); }

// If epochs end the run, end_ is an estimate, and there may be batches beyond it.
int64_t BatchSizeSchedule::next() const { return taken_ < end_ ? std::min(factor(), end_ - taken_) : factor(); }

double BatchSizeSchedule::rate_factor() const { return std::pow(static_cast<double>(next()), train_.batch_growth_exponent); }

int64_t BatchSizeSchedule::updates() const {
  BatchSizeSchedule run(train_, batch_tokens_, end_);
  int64_t updates = 0;
  for (; run.taken_ < end_; ++updates) run.taken_ += run.next();
  return updates;
}

void BatchSizeSchedule::updated(const NoiseScale& noise) {
  taken_ += next();
  const int64_t doubled = 2 * noise_factor_ * batch_tokens_;
  if (doubled <= train_.batch_follows_noise && noise.tokens() >= kNoiseOverBatch * static_cast<double>(doubled)) noise_factor_ *= 2;
}

void BatchSizeSchedule::save(State& state) const {
  state.put("batches-taken", taken_);
  state.put("batch-noise-factor", noise_factor_);
}

int64_t BatchSizeSchedule::batches_taken(const State& state) {
  return state.integer(state.has("batches-taken") ? "batches-taken" : "step");
}

void BatchSizeSchedule::restore(const State& state, double scale) {
  taken_ = std::llround(scale * static_cast<double>(batches_taken(state)));
  // Keeps the number of tokens, as far as powers of two and the current limit allow.
  const double factor = state.has("batch-noise-factor") ? scale * static_cast<double>(state.integer("batch-noise-factor")) : 1;
  for (noise_factor_ = 1;
       static_cast<double>(2 * noise_factor_) <= factor && 2 * noise_factor_ * batch_tokens_ <= train_.batch_follows_noise;)
    noise_factor_ *= 2;
}

Batch next_batches(BatchStream& stream, int64_t count) {
  Batch all = stream.next();
  for (int64_t i = 1; i < count; ++i) append(all, stream.next());
  return all;
}

}  // namespace starling
