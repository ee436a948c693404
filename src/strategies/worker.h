// The interface through which a strategy uses the replica of its rank; replica/ implements it.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "autograd/gradients.h"
#include "comm/world.h"
#include "optim/optimizer.h"
#include "strategies/buckets.h"

namespace starling {

// Statistics of a step: sums over what ranks computed.
struct StepTotals {
  double smoothed = 0, nll = 0;  // as in LossSums, nats; of the references alone, and both unweighted, where sentences are weighted
  double tokens = 0, correct = 0, source_tokens = 0, sentences = 0;
  double clipped = 0, clippable = 0;             // as in LossSums
  double reward = 0, samples = 0, distinct = 0;  // of refinement: summed over samples; samples; distinct ones
  double consistency = 0, alignment = 0;         // of R-Drop and guided attention, as in LossSums, summed over the tokens
};

// What ranks tell each other about the end of the run; travels with the statistics.
struct StepControl {
  double stop = 0;       // ranks that a signal asked to end after this step
  double finished = 0;   // ranks whose limits say that this step is the last
  double time_gone = 0;  // share of the run's time limit that is used up, 0 to 1, by rank 0's clock; 0 if no rate needs it
};

// What the ranks' messages of a step add up to.
struct StepSums {
  StepTotals totals;
  StepControl control;

  // Calls visit(number) for each, in the order of the wire.
  template <class Sums, class Visit>
  static void each(Sums& sums, Visit visit) {
    auto& t = sums.totals;
    auto& c = sums.control;
    const std::array all{&t.smoothed, &t.nll,      &t.tokens,    &t.correct, &t.source_tokens, &t.sentences, &t.clipped,     &t.clippable,
                         &c.stop,     &c.finished, &c.time_gone, &t.reward,  &t.samples,       &t.distinct,  &t.consistency, &t.alignment};
    static_assert(sizeof all / sizeof all[0] == sizeof(StepSums) / sizeof(double), "a number that does not travel");
    for (auto* x : all) visit(*x);
  }
};
constexpr int kSums = sizeof(StepSums) / sizeof(double);

// What a rank looks up in an embedding table.
struct LookupRows {
  int64_t tokens = 0;            // looked up, with duplicates
  std::vector<int32_t> touched;  // rows touched by this rank's share of the step, unique, ascending
};

class Worker {
 public:
  virtual ~Worker() = default;
  // The communicator among the workers; if the model is divided, among the ranks that hold the same part of it.
  virtual Communicator& comm() = 0;
  // x, f64, becomes the sum over the ranks that hold the parts of this replica, or over all ranks. Blocking.
  virtual void sum_over_replica(const Tensor& x) = 0;
  virtual void sum_over_all(const Tensor& x) = 0;
  virtual Clock& clock() = 0;
  virtual ParameterStore& parameters() = 0;
  virtual Optimizer& optimizer() = 0;
  // The gradient of the step's backward passes on this rank.
  virtual GradientSum& gradient_sum() = 0;

  struct Calls {
    // Called when the last forward pass is over; may be empty.
    std::function<void()> forward_done;
    // Called when bucket b of the gradient is complete, in the order of the buckets.
    std::function<void(size_t)> ready;
    // Called when the gradient of the first of several micro-batches is complete, if the model is not divided into stages; may be empty.
    std::function<void()> first_done;
  };
  // Computes loss and gradients, as sums over tokens, of this rank's share of the step's batch.
  virtual void gradients(const Calls& calls) = 0;
  // The rank's part of the sums, after gradients(); waits for its passes. A rank without a share adds to the control only.
  virtual StepSums sums() = 0;
  // The target tokens of the part of the batch whose gradient is compared with the whole batch's (noise_scale.h): a worker's whole share if
  // there are several workers, the first micro-batch if there is one. 0 if there is no such part, or if another rank of the replica counts
  // it.
  virtual double part_tokens() { return 0; }

  // Whether the first forward pass after an update calls ParameterStore::arrive for each unit, so that parameters may arrive during it.
  // Must be the same on all ranks, which must also make all other reads of parameters at the same places.
  virtual bool asks_for_units() const { return false; }

  // The rows of the table that this step's look-ups touch on this rank; with last_only, only those of the last backward pass.
  virtual LookupRows lookup_rows(const Parameter& table, bool last_only) = 0;

  // What the summed gradient is divided by: tokens or sentences of all ranks.
  virtual double gradient_divisor(const StepTotals& totals) = 0;
  // The factor on the summed gradient and the rate, from the gradient's norm after that division; called on every rank with the same
  // numbers.
  struct UpdatePlan {
    double scale = 0, rate = 0;
  };
  virtual UpdatePlan plan_update(const StepSums& sums, double gradient_norm) = 0;
  // Whether this rank has been asked to end by now: for a step that takes as long as the run.
  virtual bool asked_to_stop() { return false; }
  // The schedule's rate at an update of the run, counted from 1, and the planned number of updates: for servers that count for all workers.
  virtual double learning_rate(int64_t update) const = 0;
  virtual int64_t planned_updates() const = 0;
  // "epoch 3, batch 17 (update 500)".
  virtual std::string step_name() const = 0;
};

}  // namespace starling
