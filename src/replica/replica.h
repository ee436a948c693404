// The replica of one rank, or the rank's part of one: its model, optimizer and moving average, and what a strategy needs of them. The
// trainer, the benchmark and the simulator share this code.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "comm/world.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "parallel/shared_parameters.h"
#include "parallel/stage_passes.h"
#include "replica/bucket_times.h"
#include "replica/cost.h"
#include "replica/refine.h"
#include "replica/sharded_time.h"
#include "strategies/strategy.h"

namespace starling {

struct StepOptions {
  OptimizerOptions optimizer;
  StrategyOptions strategy;
  double label_smoothing = 0.1;
  uint64_t seed = 1;                   // of dropout
  int64_t max_steps = 100000;          // that are planned
  double r_drop = 0, r_drop_from = 0;  // alpha; the share of the updates before it
  bool beta2_by_tokens = false;        // beta2 is what one batch forgets (train.beta2-tokens)
};

// Returns the weight matrices of layers, which Muon updates, by offset; not tables, which are looked up row by row.
std::vector<MatrixPlace> layer_matrices(Model& model);

class Replica : private Worker {
 public:
  // world: the one that everything on this rank uses. A model on a MetaBackend is only timed.
  Replica(Model& model, const StepOptions& options, World& world) : Replica(model, options, world, nullptr) {}
  ~Replica() override;
  // Makes the part of a replica that the mesh gives to this rank. The mesh must outlive this.
  Replica(Model& model, const StepOptions& options, World& world, const Mesh& mesh) : Replica(model, options, world, &mesh) {}

  // Makes one update, together with all ranks. share: this replica's share of the global batch in micro-batches (possibly none), the same
  // on all ranks of the replica. The gradient is the sum over all replicas, divided once by their target tokens (or sentences). What `end`
  // asks for is returned in StepResult::control on every rank. Throws DivergedError, naming the batch and before anything has changed, if
  // the loss or a gradient is not finite (as in Strategy).
  struct End {
    bool stop = false, finished = false;  // as in StepControl
    double time_gone = 0;
  };
  StepResult step(std::span<const Batch> share, End end) { return step(share, end, Refinement{}); }
  StepResult step(std::span<const Batch> share) { return step(share, End{}); }
  // The same with samples of the share's sources (replica/refine.h), whose gradients are added; losses and tokens count the share alone.
  StepResult step(std::span<const Batch> share, End end, const Refinement& refinement);

  // Calls Strategy::begin for this rank. The constructor has done so; call it again once parameters were loaded.
  void begin() { strategy_->begin(*this); }
  // To be called after parameters have changed other than by step(): updates the copies that other ranks of the replica hold. Collective
  // among the replica.
  void share_parameters() { shared_.share(); }
  std::vector<Strategy::StateTensor> strategy_state() { return strategy_->state(*this); }
  Tensor deployed(bool final) { return strategy_->deployed(*this, final); }
  void leave() { strategy_->leave(*this); }
  // Sets what a server asks between its messages, since its only step is the whole run (Worker::asked_to_stop).
  void on_asked_to_stop(std::function<bool()> asked) { asked_ = std::move(asked); }

  Model& model() { return model_; }
  Optimizer& optimizer() override { return optimizer_; }
  int64_t moments_since() const { return optimizer_.moments_since(); }
  const Strategy& strategy() const { return *strategy_; }
  const ComputeCost& cost() const { return cost_; }
  // Sets the update at which the schedule of the learning rate ends; max_steps by default.
  void end_schedule_at(int64_t update) { schedule_end_ = static_cast<double>(update); }
  // To be called before each update where the batch grows (settings/batch_size_schedule.h). batches: how many batches of the stream the
  // update takes; after: how many will have been taken after it, which is its place in the schedule; rate_factor: the factor on its
  // learning rate.
  struct Take {
    int64_t batches, after;
    double rate_factor;
  };
  void take(const Take& next);
  // Sets a factor on the learning rate of each update, given the update's number; equal on all ranks.
  void scale_rate(std::function<double(int64_t update)> factor) { rate_factor_ = std::move(factor); }
  // Updates done.
  int64_t steps() const { return optimizer_.updates(); }
  // The moving average of the parameters (flat); kept by the first replica; an empty tensor when train.ema is 0.
  const Tensor& average() const { return average_; }
  // Bytes sent so far to other ranks of the replica.
  struct Bytes {
    int64_t boundaries = 0, shared = 0;  // between stages, put together by their shards; for parameters that several ranks hold
    double shards = 0;                   // within layers, as ShardCommunicator counts them
  };
  Bytes bytes_sent() const { return {passes_.bytes_sent(), shared_.bytes_sent(), mesh_.tensor_parallel().bytes_sent()}; }
  // The most bytes that passes under way have taken so far.
  int64_t activation_bytes() const { return passes_.activation_bytes(); }

  // Where the time of the steps went on this rank: sums, in seconds.
  struct Times {
    double forward = 0, backward = 0, total = 0;
    double passes = 0;  // forward and backward passes, a stage's waits between them included
    int64_t steps = 0;
  };
  const Times& times() const { return times_; }
  void clear_times() { times_ = {}; }

 private:
  Replica(Model& model, const StepOptions& options, World& world, const Mesh* mesh);
  Communicator& comm() override { return mesh_.data_parallel(); }
  void sum_over_replica(const Tensor& x) override { mesh_.replica().all_reduce(x).wait(); }
  void sum_over_all(const Tensor& x) override { mesh_.all().all_reduce(x).wait(); }
  Clock& clock() override { return *world_.clock; }
  ParameterStore& parameters() override { return model_.parameters(); }
  GradientSum& gradient_sum() override { return gradient_sum_; }
  void gradients(const Calls& calls) override;
  StepSums sums() override;
  double part_tokens() override;
  bool asks_for_units() const override { return model_.whole() && !mesh_.divided() && options_.optimizer.ema == 0; }
  LookupRows lookup_rows(const Parameter& table, bool last_only) override;
  double gradient_divisor(const StepTotals& totals) override;
  UpdatePlan plan_update(const StepSums& sums, double gradient_norm) override;
  bool asked_to_stop() override { return asked_ && asked_(); }
  double learning_rate(int64_t update) const override { return starling::learning_rate(options_.optimizer, update, schedule_end_); }
  int64_t planned_updates() const override { return options_.max_steps; }
  std::string step_name() const override;
  void forward(size_t index);
  // Runs the first pass after an update, whose parameters may still be arriving. It is one call, but its time passes unit by unit.
  void forward_by_units(const PassRows& rows, const std::function<void()>& body);
  // Runs the output forward and backward, where every stage has it.
  void output(size_t index);
  void backward(size_t index);
  // R-Drop's alpha in the next update; 0: sentences are passed once.
  double r_drop() const;
  // Keeps a loss of this step for its statistics. counted: the batch whose tokens it counts, or null.
  void keep(Loss loss, const Batch* counted);
  // Returns the rows of a step of a pass.
  PassRows rows_of(size_t index, size_t step);
  // Returns a pass's work, labelled for traces where the model is divided.
  Work of_pass(size_t index, Work work) const {
    if (mesh_.divided()) {
      work.stage = mesh_.stage();
      work.micro_batch = static_cast<int>(index);
    }
    return work;
  }
  // Runs a computation that makes no calls of a communicator, except between shards.
  template <class Body>
  void compute(const Work& work, size_t step, const Body& body) {
    if (mesh_.shards() > 1)
      sharded_time_.spend(work, step, body);
    else
      clock().spend(work, body);
  }
  // Called when the last pass has completed the gradient of p here.
  void gradient_complete(const Parameter& p);

  Model& model_;
  StepOptions options_;
  World& world_;
  std::optional<Mesh> own_mesh_;
  const Mesh& mesh_;
  std::unique_ptr<Strategy> strategy_;
  ComputeCost cost_;
  Optimizer optimizer_;
  Tensor average_;
  BucketTracker tracker_;
  BucketTimes bucket_times_;
  GradientSum gradient_sum_;
  SharedParameters shared_;
  StagePasses passes_;
  ShardedTime sharded_time_;
  Times times_;
  // What lives for one step.
  struct Step {
    Step(std::span<const Batch> batches, const End& asked_for, const Refinement& samples, double r_drop);
    std::vector<const Batch*> share;  // the references' micro-batches, then the samples'
    std::vector<Batch> doubled;       // with R-Drop, the batches that `share` points to
    std::vector<Batch> stand_ins;     // for the batches of `share`, on a MetaBackend
    size_t references;
    struct KeptLoss {
      Loss loss;
      const Batch* counted;
    };
    std::vector<KeptLoss> losses;  // their sums are in loss_sums_
    const Refinement& refinement;
    End end;
    const Calls* calls = nullptr;  // of gradients(), while it is under way
  };
  std::optional<Step> step_;  // the one under way
  Tensor loss_sums_;          // [losses, Loss::kSums], kept from step to step
  double schedule_end_ = static_cast<double>(options_.max_steps);
  std::function<bool()> asked_;
  std::optional<Take> take_;
  std::function<double(int64_t update)> rate_factor_;
};

// Swaps the parameters with another flat buffer for the lifetime of this object: validation with the moving average.
class SwappedParameters {
 public:
  SwappedParameters(ParameterStore& store, const Tensor& other);
  ~SwappedParameters();
  SwappedParameters(const SwappedParameters&) = delete;

 private:
  void swap();
  ParameterStore& store_;
  Tensor other_;
};

}  // namespace starling
