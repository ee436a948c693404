// What of a run depends on whether its ranks are synchronous. Synchronous ranks make every update together, and validate and save
// together. Where servers keep the model (Replicas::served), each rank updates at its own pace: the servers count the updates, and rank 0
// alone asks them for the model that it validates and saves.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "strategies/strategy.h"

namespace starling {

class RunDriver {
 public:
  virtual ~RunDriver() = default;
  // Whether what comes between updates is collective.
  virtual bool synchronous() const = 0;
  // No update is to be made any more, though none was forbidden by a signal.
  virtual bool finished() const = 0;
  // Of the run's updates, 0 to 1; counted: as the last update's result has it.
  virtual double fraction(double counted) const = 0;
  // Whether this rank knows that the next update must be the last.
  virtual bool last_update() const = 0;
  // Whether the step that has just ended was an update of this rank's; before: updates done before it.
  virtual bool updated(int64_t before) const = 0;

  // Calls body, on the ranks that take part, while the run's model has the parameters to measure; the communicator is of those with the
  // same part of it. All of them wait for rank 0's to return.
  virtual void for_validation(const std::function<void(Communicator&)>& body) = 0;
  // The same for a checkpoint, on the first replica with the parameters to deploy but for their moving average in the run's model; also
  // with where this rank's own parameters lie meanwhile, and the strategy's state.
  using Save = std::function<void(Communicator&, const Tensor& own, const std::vector<Strategy::StateTensor>& strategy)>;
  virtual void for_checkpoint(const Save& body) = 0;
};

}  // namespace starling
