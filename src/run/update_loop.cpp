#include "run/update_loop.h"

#include "settings/micro_batch.h"

namespace starling {

StepOptions step_options(const Config& config, const OptimizerOptions& optimizer, int64_t max_steps) {
  const TrainConfig& t = config.train;
  StepOptions o;
  o.optimizer = optimizer;
  o.strategy = config.strategy;
  o.label_smoothing = t.objective == Objective::mixed ? 0 : t.label_smoothing;
  o.seed = t.seed;
  o.max_steps = max_steps;
  o.r_drop = t.r_drop;
  o.r_drop_from = t.r_drop_from;
  o.beta2_by_tokens = t.beta2_tokens > 0;
  return o;
}

Batch share_of(const Batch& batch, const Replica& replica, int rank) {
  const int workers = replica.strategy().workers();
  if (rank >= workers) return {};
  const ComputeCost& cost = replica.cost();
  return slice_for_rank(batch, rank, workers, cost.source_weight(), cost.target_weight());
}

MadeUpdate UpdateLoop::make(const Source& source) {
  taken_before_ = taken();
  Model& model = replica_.model();
  model.set_clip(state_clip(config_, taken_before_ + 1));
  int64_t count = 1;
  if (growth_) {
    count = growth_->next();
    replica_.take({count, growth_->taken() + count, growth_->rate_factor()});
  }
  const Batch batch = source.next(count);
  // Sampling needs the current parameters. Ranks with a share are about to read them; those without one wait at the same place.
  if (source.refine) model.parameters().wait_for_parameters();
  Refinement refinement;
  Batch own = share_of(batch, replica_, rank_);
  if (source.refine && own.target.count() > 0) refinement = source.refine(own);
  const std::vector<Batch> parts = micro_batches(own, micro_tokens_, config_.parallel, replica_.cost());
  MadeUpdate made;
  made.epoch = batch.epoch;
  for (const Batch& part : parts) made.own_tokens += part.target.count();
  made.result = replica_.step(parts, source.end ? source.end() : Replica::End{}, refinement);
  return made;
}

PostUpdateActions UpdateLoop::count(const Distances& every, const NoiseScale& noise) {
  if (growth_) growth_->updated(noise);
  return actions_after(config_, every, replica_.steps(), taken(), taken_before_);
}

}  // namespace starling
