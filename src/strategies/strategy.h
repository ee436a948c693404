// How the replicas of several ranks come to one result per step: blocking straight-line code over a Worker, which runs unchanged over MPI
// and in the simulator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strategies/noise_scale.h"
#include "strategies/options.h"
#include "strategies/worker.h"

namespace starling {

struct StepResult {
  StepTotals totals;         // over all ranks
  StepControl control;       // likewise
  double gradient_norm = 0;  // of the mean gradient per token (train.loss-normalization: or sentence), before clipping
  double learning_rate = 0;
  NoiseSample noise;
  double fraction = 0;  // of the run's updates; set if replicas are served, whose servers count them
};

// An embedding table of the model, as its gradient exchange sees it.
struct ExchangedTable {
  Parameter* table = nullptr;
  bool looked_up = false, output = false;
};

// How the replicas of a run's ranks relate between updates.
enum class Replicas : uint8_t {
  equal,   // equal bit for bit on every rank that computes
  merged,  // different; deployed() makes the one that counts from them
  served   // different and at different updates; servers have the one that counts, rank 0 asks them for it, and nothing is collective
};

// One way in which the ranks of a run make updates together.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // The number of ranks that compute: rank r < workers() is worker r, the others only serve.
  virtual int workers() const = 0;
  // The parameters whose optimizer state a rank keeps, and which the other ranks then get from it.
  virtual std::vector<Range> owned(int rank) const = 0;
  // The units of exchange, which the worker reports as complete.
  virtual const std::vector<Bucket>& buckets() const = 0;
  // Makes one update. Throws DivergedError, which names the step, before parameters or optimizer have changed, if the loss or the gradient
  // is not finite: on every rank if all exchange gradients, else on the rank where it happens.
  virtual StepResult step(Worker& worker) = 0;
  // Called once the ranks hold the parameters to start from, before the first step and before state() is overwritten.
  virtual void begin(Worker&) {}
  // What a resumed run needs beyond parameters and the optimizer's state; `shared`: equal on all ranks. Waits for everything in progress,
  // so that a resumed run equals an uninterrupted one. Collective.
  struct StateTensor {
    std::string name;
    Tensor tensor;
    bool shared;
  };
  virtual std::vector<StateTensor> state(Worker&) { return {}; }
  virtual Replicas replicas() const { return Replicas::equal; }
  // The parameters to validate and to deploy (flat); empty if every rank's own parameters are these. `final`: include everything that has
  // not been merged yet, as at the end of training. Nothing else changes, and before the end no computing is charged. Collective.
  virtual Tensor deployed(Worker&, bool /*final*/) { return {}; }
  // The bytes that this rank has sent and received for deployed() and state() outside step(), if replicas are served.
  virtual int64_t aside_bytes() const { return 0; }
  // Announces that this rank makes no further step; if replicas are served, the others need not wait for it.
  virtual void leave(Worker&) {}
  // A summary of the finished run: a line for the log, "" if there is nothing to say, and its figures, for events.
  struct Report {
    std::string text;
    std::vector<std::pair<std::string, double>> figures;
  };
  virtual Report report() const { return {}; }
  // For the log: what is exchanged, and the bytes per step by the closed form.
  virtual std::string describe() const = 0;
  // For the log: how the embedding tables were exchanged last time, and the bytes of each way; "" if there was no choice.
  virtual std::string embedding_report() const { return ""; }
};

}  // namespace starling
