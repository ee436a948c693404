#include "strategies/totals.h"

#include "base/error.h"

namespace starling {
namespace {

// Every number of the sums, in the order of the wire.
template <class Totals, class Visit>
void each(Totals& t, Visit visit) {
  int i = 0;
  for (auto* x : {&t.smoothed, &t.nll, &t.tokens, &t.correct, &t.source_tokens, &t.sentences, &t.clipped, &t.clippable, &t.stop,
                  &t.finished, &t.reward, &t.samples, &t.distinct})
    visit(*x, static_cast<size_t>(i++));
}

}  // namespace

void write_totals(const StepTotals& totals, std::span<double> numbers) {
  each(totals, [&](const double& x, size_t i) { numbers[i] = x; });
}

StepTotals read_totals(std::span<const double> numbers) {
  StepTotals totals;
  each(totals, [&](double& x, size_t i) { x = numbers[i]; });
  return totals;
}

StepTotals& operator+=(StepTotals& a, const StepTotals& b) {
  double more[kTotals];
  write_totals(b, more);
  each(a, [&](double& x, size_t i) { x += more[i]; });
  return a;
}

void refuse_step(Worker& worker, const char* what) {
  throw DivergedError(
      fmt::format("the {} of {} is not finite; nothing was updated. The latest checkpoint is intact: continue from it with a lower "
                  "train.learning-rate or longer train.warmup, or with --train.precision f32",
                  what, worker.step_name()));
}

}  // namespace starling
