// What is due after an update and is no training.
#pragma once

#include "train/config.h"

namespace starling {

struct Due {
  bool reports = false, judges = false, compares = false, saves = false;
  bool any() const { return reports || judges || compares || saves; }
};

// After update `step`. taken: batches of the stream by then, and before it, which are more than updates where the batch grows: validations
// and checkpoints are as many tokens apart throughout.
inline Due due_after(const Config& config, int64_t step, int64_t taken, int64_t taken_before) {
  const auto every = [&](int64_t n) { return n > 0 && step % n == 0; };
  const auto spaced = [&](int64_t n) { return n > 0 && taken / n > taken_before / n; };
  Due due;
  due.reports = every(config.log.every) || step == 1;  // the first shows at once that it runs
  due.judges = config.valid.enabled() && spaced(config.valid.every);
  due.compares = every(config.strategy.check_every), due.saves = spaced(config.checkpoint.every);
  return due;
}

}  // namespace starling
