// Running statistics of the loss and the gradient's norm, which tell a run that diverges, or never begins to learn, from one that learns.
// All of it is arithmetic on the numbers of each update, which are equal on all ranks: so all decide alike, and again in a repeated run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "storage/state.h"

namespace starling {

enum class Learning : uint8_t { well, diverging, stalled };

class LossWatch {
 public:
  // floor: entropy of the target tokens' frequencies, nats; a model that has learned these frequencies and nothing else has this loss.
  // 0: unknown, and stalls are not noticed. warmup: updates of the learning rate's warm-up. patience: updates after which a run that is
  // still at the floor is looked at; see patience_of.
  explicit LossWatch(double floor = 0, int64_t warmup = 0, int64_t patience = 300) : floor_(floor), warmup_(warmup), patience_(patience) {}
  // Returns 300 updates, or a million target tokens if that is more updates.
  static int64_t patience_of(int64_t batch_tokens) { return std::max<int64_t>(300, 1'000'000 / std::max<int64_t>(batch_tokens, 1)); }

  // Takes the mean loss (nats per target token, without label smoothing) and the gradient's norm of an update, and says how the run learns:
  // diverging: the loss, averaged over some 8 updates, is above its best by more than limit(); stalled: 100 updates after the
  // warm-up or later, and after its patience, it is not kStallDepth below the floor, and has not fallen by kClearFall in two thirds of
  // that.
  Learning add(int64_t step, double loss, double gradient_norm);

  // Returns a watch that knows the run, and none of its updates.
  LossWatch restarted() const { return LossWatch(floor_, warmup_, patience_); }

  // How far the averaged loss may rise above its best: 4 mean deviations of single updates, but half a nat at least and one
  // and a half at most.
  double limit() const;
  // Whether a run may go back to here: the loss is near its best, and below the floor if that is known.
  bool calm() const;
  // Whether the loss of a single batch is beyond what batches usually differ by.
  bool far_above(double loss) const { return updates_ >= kFewest && loss - average() > limit(); }
  double average() const;  // of the loss
  // Returns the numbers for people: "loss 7.31 (2.10 at update 340), gradient norm 12.3 (usually 0.81)".
  std::string text() const;

  void save(State& state) const;
  // Restores what was saved, if the state has it.
  void restore(const State& state);

  static constexpr int64_t kFewest = 20;                         // updates before anything is said
  static constexpr double kStallDepth = 0.3, kClearFall = 0.15;  // nats

 private:
  double floor_;
  int64_t warmup_, patience_;
  int64_t updates_ = 0;
  double sum_ = 0, weight_ = 0;      // the average is their quotient
  double last_ = 0, deviation_ = 0;  // loss of the last update; mean absolute deviation of single updates, by their successive differences
  double best_ = 0, mark_ = 0;       // least average; the average at the last clear fall
  int64_t best_step_ = 0, mark_step_ = 0;
  double log_norm_ = 0, last_norm_ = 0;
};

}  // namespace starling
