// Options of the optimizer and the learning-rate schedule; part of the `train` section of a configuration.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/optimizer_steps.h"
#include "config/words.h"

namespace starling {

enum class OptimizerKind : uint8_t { adam, adamw, muon, adagrad, sgd };
constexpr auto words(OptimizerKind) { return std::array{"adam", "adamw", "muon", "adagrad", "sgd"}; }
enum class RateSchedule : uint8_t { inverse_sqrt, constant, linear, cosine, wsd, step };
constexpr auto words(RateSchedule) { return std::array{"inverse-sqrt", "constant", "linear", "cosine", "wsd", "step"}; }
// Schedules that end with the run.
constexpr bool has_end(RateSchedule s) { return s == RateSchedule::linear || s == RateSchedule::cosine || s == RateSchedule::wsd; }
enum class LossNormalization : uint8_t { tokens, sentences };  // what the summed gradient is divided by
constexpr auto words(LossNormalization) { return std::array{"tokens", "sentences"}; }

// What else is to be known of an optimizer.
struct OptimizerTraits {
  std::array<const char*, kMostStates> state_names{};  // in checkpoints, of what is kept for each parameter: a number each
  bool adam = false;                                   // Adam updates at least some of the parameters
  bool epsilon = false;                                // train.epsilon has an effect

  constexpr int states() const {
    return static_cast<int>(std::count_if(state_names.begin(), state_names.end(), [](auto x) { return x; }));
  }
  // Elements that an update reads and writes for each parameter: value and states both ways, and the gradient.
  constexpr double elements_moved() const { return 3 + 2 * states(); }
};
constexpr OptimizerTraits traits_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return {.state_names = {"adam.m", "adam.v"}, .adam = true, .epsilon = true};
    case OptimizerKind::muon:
      return {.state_names = {"muon.m", "muon.v"}, .adam = true, .epsilon = true};
    case OptimizerKind::adagrad:
      return {.state_names = {"adagrad.v"}, .epsilon = true};
    case OptimizerKind::sgd:
      return {};
  }
  return {};
}

// The words of the optimizers with a trait.
inline std::vector<std::string> optimizers_with(bool OptimizerTraits::*trait) {
  std::vector<std::string> all;
  for (const char* name : words(OptimizerKind{}))
    if (traits_of(from_word<OptimizerKind>(name)).*trait) all.emplace_back(name);
  return all;
}

// The largest decay of a moment, which is kept in f32: there 1 - decay is accurate to 0.14 %. At 0.999999 it is accurate to 1.3 %, and from
// 0.99999998 on the decay itself rounds to 1.
constexpr double kMostDecay = 0.99999;

// The number of warm-up updates below which the peak rate rises no further: an even shorter warm-up would be less stable and gain nothing.
constexpr int64_t kShortestWarmup = 400;

struct OptimizerOptions {
  OptimizerKind optimizer = OptimizerKind::adam;
  double learning_rate = 5e-4;  // peak
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double muon_momentum = 0.95;
  double weight_decay = 0.0;  // adam, adagrad: added to the gradient; adamw: decoupled
  double clip_norm = 1.0;     // global gradient norm; 0 turns clipping off
  double ema = 0.0;           // decay per update of the averaged parameters; 0 turns averaging off
  RateSchedule schedule = RateSchedule::inverse_sqrt;
  int64_t warmup = 4000;        // updates of linear warm-up
  double warmup_share = 0;      // the largest share of the run that it may take; 0: no limit
  int64_t decay_every = 10000;  // updates, schedule step
  double decay_factor = 0.5;    // schedule step
  double final_rate = 0.0;      // fraction of the peak at the end, for schedules that have an end
  double decay_share = 0.2;     // of the run, schedule wsd
  int64_t sgd_after = 0;        // updates of Adam, then plain SGD takes over; 0: never
  double sgd_learning_rate = 0.5, sgd_clip_norm = 5.0;
  int64_t sgd_halve_after = 0, sgd_halve_every = 0;  // updates of SGD at the full rate, and between halvings (0: never)
  LossNormalization loss_normalization = LossNormalization::tokens;
};

template <class Visitor>
void visit(Visitor& v, OptimizerOptions& c) {
  v.choice(
      "optimizer", c.optimizer,
      "optimizer; adamw decouples the weight decay; muon makes the singular values of each weight matrix's step equal, and is adamw for "
      "embeddings, biases and norms (docs/guides/optimizers.md); adagrad divides by the root of all squares so far; sgd keeps no state");
  v.field(
      "learning-rate", c.learning_rate,
      "peak learning rate; a Transformer for which neither this nor warmup is given has those of its corpus (docs/start/first-project.md)",
      0.0, 100.0);
  v.choice("schedule", c.schedule,
           "learning rate after the linear warm-up; linear, cosine and wsd (warm-up, stable, decay) end where the run does, at max-steps, "
           "max-tokens, max-epochs or max-minutes, whichever comes first (docs/guides/optimizers.md)");
  v.field("warmup", c.warmup, "linear warm-up, updates; see learning-rate", 0, 1000000000);
  v.field("warmup-share", c.warmup_share,
          "the warm-up takes at most this share of the run, measured by the limit that ends the run first, minutes included; where that "
          "shortens it, the peak rises by the square root of the factor, up to what 400 updates would give; 0 = off",
          0.0, 1.0);
  v.field("decay-every", c.decay_every, "updates between two decays", 1, 1000000000).needs("train.schedule", {RateSchedule::step});
  v.field("decay-factor", c.decay_factor, "factor of each decay", 0.0, 1.0).needs("train.schedule", {RateSchedule::step});
  v.field("final-rate", c.final_rate, "fraction of the peak rate at the end of the run", 0.0, 1.0)
      .needs("train.schedule", {RateSchedule::linear, RateSchedule::cosine, RateSchedule::wsd});
  v.field("decay-share", c.decay_share, "share of the run, at its end, in which the rate falls", 0.0, 1.0)
      .needs("train.schedule", {RateSchedule::wsd});
  v.field("beta1", c.beta1, "decay of the first moment", 0.0, kMostDecay).needs("train.optimizer", optimizers_with(&OptimizerTraits::adam));
  v.field("beta2", c.beta2, "decay of the second moment", 0.0, kMostDecay)
      .needs("train.optimizer", optimizers_with(&OptimizerTraits::adam));
  v.field("epsilon", c.epsilon, "added to the root of the second moment", 1e-30, 1.0)
      .needs("train.optimizer", optimizers_with(&OptimizerTraits::epsilon));
  v.field("muon-momentum", c.muon_momentum, "decay of the momentum of weight matrices", 0.0, kMostDecay)
      .needs("train.optimizer", {OptimizerKind::muon});
  v.field("weight-decay", c.weight_decay, "weight decay per update (times the learning rate)", 0.0, 1.0);
  v.field("clip-norm", c.clip_norm, "global gradient norm is clipped to this; 0 = off", 0.0, 1e9);
  v.field("sgd-after", c.sgd_after, "updates of Adam, after which plain SGD with its own rate and clipping takes over; 0 = never", 0,
          1000000000000);
  v.field("sgd-learning-rate", c.sgd_learning_rate, "learning rate from the change to SGD on, without warm-up", 0.0, 1000.0)
      .needs("train.sgd-after");
  v.field("sgd-clip-norm", c.sgd_clip_norm, "clip-norm from the change to SGD on; 0 = off", 0.0, 1e9).needs("train.sgd-after");
  v.field("sgd-halve-after", c.sgd_halve_after, "updates of SGD after which its rate is halved for the first time; 0 = sgd-halve-every", 0,
          1000000000000)
      .needs("train.sgd-halve-every");
  v.field("sgd-halve-every", c.sgd_halve_every, "updates between the further halvings of that rate; 0 = the rate is never halved", 0,
          1000000000000)
      .needs("train.sgd-after");
  v.choice("loss-normalization", c.loss_normalization,
           "what the gradient, summed over the batch, is divided by before it is clipped and applied; published rates of SGD presume "
           "sentences, whose gradients are larger by the mean target length");
  v.field("ema", c.ema,
          "exponential moving average of the parameters, decay per update (at first (1+t)/(10+t), if smaller); 0 = off; validated and "
          "saved in place of the raw ones",
          0.0, 0.99999999);
}

}  // namespace starling
