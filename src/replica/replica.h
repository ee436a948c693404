// The replica of one rank, or the rank's part of one: its model, optimizer and moving average, and what a strategy needs of them. The
// trainer, the benchmark and the simulator share it.
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

// The weights of layers, which are Muon's, by offset; tables are looked up row by row.
std::vector<MatrixPlace> layer_matrices(Model& model);

class Replica : private Worker {
 public:
  // world: one for all of this rank; a model on an idle backend is only timed.
  Replica(Model& model, const StepOptions& options, World& world) : Replica(model, options, world, nullptr) {}
  ~Replica() override;
  // The part of a replica that the mesh, which must live as long as this, gives to this rank.
  Replica(Model& model, const StepOptions& options, World& world, const Mesh& mesh) : Replica(model, options, world, &mesh) {}

  // One update, of all ranks together: this replica's share of the global batch in micro-batches (possibly none), the same on all its
  // ranks; the gradient is the sum over all of them divided once by their target tokens (or sentences). What `end` asks for comes back in
  // every rank's StepResult::control. Throws Error naming the batch, before anything has changed, if the loss or a gradient is not finite (as in
  // Strategy).
  struct End {
    bool stop = false, finished = false;  // as in StepControl
    double time_gone = 0;
  };
  StepResult step(std::span<const Batch> share, End end) { return step(share, end, Refinement{}); }
  StepResult step(std::span<const Batch> share) { return step(share, End{}); }
  // The same with samples of the share's sources (replica/refine.h), whose gradients are added. Statistics count the share alone.
  StepResult step(std::span<const Batch> share, End end, const Refinement& refinement);

  // As in Strategy, for this rank. A new replica has begun; one whose parameters were loaded begins again.
  void begin() { strategy_->begin(*this); }
  // Once parameters have changed otherwise than by step(): those that other ranks of the replica have copies of go there. Collective among
  // the replica.
  void share_parameters() { shared_.share(); }
  std::vector<Strategy::StateTensor> strategy_state() { return strategy_->state(*this); }
  Tensor deployed(bool final) { return strategy_->deployed(*this, final); }
  void leave() { strategy_->leave(*this); }
  // What a server asks between its messages, as its only step is the whole run (Worker::asked_to_stop).
  void on_asked_to_stop(std::function<bool()> asked) { asked_ = std::move(asked); }

  Model& model() { return model_; }
  Optimizer& optimizer() override { return optimizer_; }
  int64_t moments_since() const { return optimizer_.moments_since(); }
  const Strategy& strategy() const { return *strategy_; }
  const ComputeCost& cost() const { return cost_; }
  // The update that the schedule of the learning rate ends at; where nobody says, max_steps.
  void end_schedule_at(int64_t update) { schedule_end_ = static_cast<double>(update); }
  // Where the batch grows (settings/batch_size_schedule.h), before each update: how many batches of the stream it takes, how many there
  // will have been after it, which is its place in the schedule, and the factor of its learning rate.
  struct Take {
    int64_t batches, after;
    double rate_factor;
  };
  void take(const Take& next);
  // Updates done.
  int64_t steps() const { return optimizer_.updates(); }
  // The moving average of the parameters (flat); kept by the first replica; an empty tensor when train.ema is 0.
  const Tensor& average() const { return average_; }
  // Sent so far to other ranks of the replica.
  struct Bytes {
    int64_t boundaries = 0, shared = 0;  // from stage to stage, and put together there; for parameters that several have
    double shards = 0;                   // within layers, as ShardCommunicator counts
  };
  Bytes bytes_sent() const { return {passes_.bytes_sent(), shared_.bytes_sent(), mesh_.tensor_parallel().bytes_sent()}; }
  // What the passes under way took, at most, so far.
  int64_t activation_bytes() const { return passes_.activation_bytes(); }

  // Where the time of the steps went, seconds, summed up: on this rank.
  struct Times {
    double forward = 0, backward = 0, total = 0;
    double passes = 0;  // forward and backward passes with what a stage waits for between them
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
  // The first pass after an update, whose parameters may be on their way. It is one call, but its time passes unit by unit.
  void forward_by_units(const PassRows& rows, const std::function<void()>& body);
  // The output's pass, both ways, where every stage has it.
  void output(size_t index);
  void backward(size_t index);
  // R-Drop's alpha in the next update; 0: sentences are passed once.
  double r_drop() const;
  // A loss of this step, for its statistics; counted: the batch whose tokens it is of, or null.
  void keep(Loss loss, const Batch* counted);
  // Of a step of a pass.
  PassRows rows_of(size_t index, size_t step);
  // A pass's work, for traces of a model that is divided.
  Work of_pass(size_t index, Work work) const {
    if (mesh_.divided()) work.stage = mesh_.stage(), work.micro_batch = static_cast<int>(index);
    return work;
  }
  // Computing that nothing of a communicator is called in, other than by shards.
  template <class Body>
  void compute(const Work& work, size_t step, const Body& body) {
    if (mesh_.shards() > 1)
      sharded_time_.spend(work, step, body);
    else
      clock().spend(work, body);
  }
  // The last pass has completed the gradient of p here.
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
  std::vector<const Batch*> share_;  // the references' micro-batches, then the samples'
  std::vector<Batch> doubled_;       // those that share_ points to, with R-Drop
  std::vector<Batch> stand_ins_;     // for them, on an idle backend
  size_t references_ = 0;
  struct KeptLoss {
    Loss loss;
    const Batch* counted;
  };
  std::vector<KeptLoss> losses_;  // of each, whose sums are in
  Tensor loss_sums_;              // [losses, 5]
  const Refinement* refinement_ = nullptr;
  End end_;
  const Calls* calls_ = nullptr;  // of gradients(), while it is under way
  double schedule_end_ = static_cast<double>(options_.max_steps);
  std::function<bool()> asked_;
  std::optional<Take> take_;
};

// Exchanges the parameters with another flat buffer for the lifetime of this object: validation with the moving average.
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
