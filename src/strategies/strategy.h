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
  double fraction = 0;  // of the run's updates, where replicas are served and the servers count them
};

// An embedding table of the model, as far as exchanging its gradient is concerned.
struct ExchangedTable {
  Parameter* table = nullptr;
  bool looked_up = false, output = false;
};

// What the replicas of a run's ranks are to each other between updates.
enum class Replicas : uint8_t {
  equal,   // the same bit for bit, on every rank that computes
  merged,  // unlike; deployed() makes the one that counts of them
  served   // unlike, and at different updates: servers have the one that counts, rank 0 asks them for it and nothing is collective
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Ranks that compute; rank r < workers() is worker r, the others only serve.
  virtual int workers() const = 0;
  // The parameters whose optimizer state a rank keeps; what the others then get from it.
  virtual std::vector<Range> owned(int rank) const = 0;
  // The units of exchange, for the worker to report.
  virtual const std::vector<Bucket>& buckets() const = 0;
  // One update. Throws DivergedError naming the step, before parameters or optimizer have changed, if the loss or the gradient is not
  // finite: on every rank where all exchange gradients, else on the rank that it happens to.
  virtual StepResult step(Worker& worker) = 0;
  // Once the ranks hold the parameters to start from, before the first step and before state() is overwritten.
  virtual void begin(Worker&) {}
  // What a continued run needs beyond parameters and the optimizer's state; `shared`: equal on all ranks. Waits for what is under way, so
  // that a continued run equals an uninterrupted one. Collective.
  struct StateTensor {
    std::string name;
    Tensor tensor;
    bool shared;
  };
  virtual std::vector<StateTensor> state(Worker&) { return {}; }
  virtual Replicas replicas() const { return Replicas::equal; }
  // The parameters to validate and to deploy (flat); an empty tensor: those of every rank are they. `final`: with everything that has not
  // been merged yet, as at the end of training. Nothing else changes by that, and before the end no computing is charged. Collective.
  virtual Tensor deployed(Worker&, bool /*final*/) { return {}; }
  // Bytes that this rank has sent and received for deployed() and state() outside step(), where replicas are served.
  virtual int64_t aside_bytes() const { return 0; }
  // This rank will make no further step; where replicas are served, the others need not wait for it.
  virtual void leave(Worker&) {}
  // What the run was like, once it is over: a line for the log, "" if there is nothing to say, and the numbers in it, for events.
  struct Report {
    std::string text;
    std::vector<std::pair<std::string, double>> figures;
  };
  virtual Report report() const { return {}; }
  // For the log: what is exchanged and how many bytes a step by the closed form.
  virtual std::string describe() const = 0;
  // How the embedding tables went over the wire last time and the bytes compared, for the log; "" if there was no choice.
  virtual std::string embedding_report() const { return ""; }
};

}  // namespace starling
