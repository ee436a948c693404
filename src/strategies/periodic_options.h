// Options of the periodic family: local updates, then an outer optimizer on the displacements of the replicas. Presets are named sets of
// these values (strategies/presets.cpp).
#pragma once

#include <cstdint>

#include "config/words.h"

namespace starling {

enum class LateMerge : uint8_t { corrected, mix };
constexpr auto words(LateMerge) { return std::array{"corrected", "mix"}; }
enum class MergeRule : uint8_t { mean, radial };
constexpr auto words(MergeRule) { return std::array{"mean", "radial"}; }
enum class MergeWeights : uint8_t { tokens, equal };
constexpr auto words(MergeWeights) { return std::array{"tokens", "equal"}; }
enum class OuterForm : uint8_t { nesterov, classical, anchored };
constexpr auto words(OuterForm) { return std::array{"nesterov", "classical", "anchored"}; }
enum class InnerState : uint8_t { keep, reset, average };
constexpr auto words(InnerState) { return std::array{"keep", "reset", "average"}; }

struct PeriodicOptions {
  int64_t interval = 50;  // H, local updates between two merges of one parameter
  int64_t fragments = 1;  // P, merged one after the other
  int64_t delay = 0;      // updates between sending and merging
  LateMerge late_merge = LateMerge::corrected;
  double late_mix = 0.5;  // of the replica's own value
  MergeRule merge = MergeRule::mean;
  MergeWeights merge_weights = MergeWeights::tokens;
  double outer_rate = 1, outer_momentum = 0;
  int64_t outer_momentum_steps = 0;  // time constant, updates; 0: outer_momentum as it is
  OuterForm outer_form = OuterForm::nesterov;
  InnerState inner_state = InnerState::keep;
  int64_t first_moment_interval = 0, second_moment_interval = 0;  // updates; 0: with every merge
};

template <class Visitor>
void visit(Visitor& v, PeriodicOptions& c) {
  v.field("interval", c.interval, "local updates between two merges of a parameter", 1, 1000000000);
  v.field("fragments", c.fragments,
          "number of parts in which the parameters are merged, each at its own time; each layer goes to the smallest part so far", 1, 1000);
  v.field("delay", c.delay, "updates between sending a fragment and merging it, which hide the exchange", 0, 1000000);
  v.choice(
       "late-merge", c.late_merge,
       "corrected = the merged value plus what the replica has moved by since it sent; mix = late-mix of the replica's own value and the "
       "rest of the merged one")
      .needs("strategy.periodic.delay");
  v.field("late-mix", c.late_mix, "share of the replica's own value", 0.0, 1.0).needs("strategy.periodic.late-merge", {LateMerge::mix});
  v.choice("merge", c.merge,
           "mean of the replicas' displacements; radial = mean of their directions with their mean length (tables of embeddings: mean)");
  v.choice("merge-weights", c.merge_weights, "weight of a replica: the target tokens it has seen, or 1");
  v.field("outer-learning-rate", c.outer_rate, "factor on the merged displacement (block learning rate)", 0.0, 100.0);
  v.field("outer-momentum", c.outer_momentum,
          "share of the last outer step in the next (block momentum); -1 = 1 - 1/workers, with which merges move by the sum of what the "
          "workers moved by",
          -1.0, 0.9999);
  v.field("outer-momentum-steps", c.outer_momentum_steps,
          "in place of outer-momentum: updates after which an outer step has 1/e of its weight, whatever the interval; 0 = off", 0,
          1000000000);
  v.choice("outer-form", c.outer_form,
           "of the outer momentum; nesterov: local updates start ahead of the merged model; anchored = as in CNTK and fairseq, which "
           "take the point ahead as the model and gain (1 + momentum) times as much");
  v.choice("inner-state", c.inner_state, "what a merge does to the optimizers' moments");
  v.field("first-moment-interval", c.first_moment_interval, "updates between two averagings of the first moments; 0 = with every merge", 0,
          1000000000)
      .needs("strategy.periodic.inner-state", {InnerState::average});
  v.field("second-moment-interval", c.second_moment_interval, "the same for the second moments", 0, 1000000000)
      .needs("strategy.periodic.inner-state", {InnerState::average});
}

}  // namespace starling
