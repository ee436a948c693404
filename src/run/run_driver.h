// The parts of a run that depend on whether its ranks are synchronous. Synchronous ranks make every update together, and validate and save
// together. Where servers hold the model (Replicas::served), each rank updates at its own pace: the servers count the updates, and rank 0
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
  // Whether the actions between updates (reports, validation, checkpoints) are collective.
  virtual bool synchronous() const = 0;
  // Whether the run is over by its limits; a stop by a signal does not count.
  virtual bool finished() const = 0;
  // Returns the fraction of the run's updates that are done, 0 to 1. counted: StepResult::fraction of the last update.
  virtual double fraction(double counted) const = 0;
  // Whether this rank knows that the next update must be the last.
  virtual bool last_update() const = 0;
  // Whether the step that has just ended was an update by this rank. before: updates done before it.
  virtual bool updated(int64_t before) const = 0;

  // Calls body on the ranks that take part, while the run's model has the parameters to measure. The communicator has the ranks with the
  // same part of the model. All of them wait until rank 0's body has returned.
  virtual void for_validation(const std::function<void(Communicator&)>& body) = 0;
  // The same for a checkpoint; here the communicator has all ranks that take part. On the first replica, the run's model has the parameters
  // to deploy, before their moving average is applied. body also gets the tensor that holds this rank's own parameters during the call, and
  // the strategy's state.
  using Save = std::function<void(Communicator&, const Tensor& own, const std::vector<Strategy::StateTensor>& strategy)>;
  virtual void for_checkpoint(const Save& body) = 0;
};

}  // namespace starling
