// Options of the optimizer and the learning-rate schedule; part of the `train` section of a configuration.
#pragma once

#include <cstdint>
#include <string>

namespace starling {

struct OptimizerOptions {
  std::string optimizer = "adam";  // adam | adamw | adagrad | sgd
  double learning_rate = 5e-4;     // peak
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double weight_decay = 0.0;              // adam, adagrad: added to the gradient; adamw: decoupled
  double clip_norm = 1.0;                 // global gradient norm; 0 turns clipping off
  double ema = 0.0;                       // decay per update of the averaged parameters; 0 turns averaging off
  std::string schedule = "inverse-sqrt";  // inverse-sqrt | constant | cosine | step
  int64_t warmup = 4000;                  // updates of linear warm-up
  int64_t decay_every = 10000;            // updates, schedule step
  double decay_factor = 0.5;              // schedule step
  double final_rate = 0.0;                // fraction of the peak that cosine ends at
  int64_t sgd_after = 0;                  // updates of Adam, then plain SGD takes over; 0: never
  double sgd_learning_rate = 0.5, sgd_clip_norm = 5.0;
  int64_t sgd_halve_after = 0, sgd_halve_every = 0;  // updates of SGD at the full rate, and between halvings (0: never)
  std::string loss_normalization = "tokens";         // tokens | sentences: what the summed gradient is divided by
};

template <class Visitor>
void visit(Visitor& v, OptimizerOptions& c) {
  v.choice("optimizer", c.optimizer, {"adam", "adamw", "adagrad", "sgd"},
           "optimizer; adamw decouples the weight decay; adagrad divides by the root of all squares so far; sgd keeps no state");
  v.field("learning-rate", c.learning_rate, "peak learning rate; a Transformer for which neither this nor warmup is given has those of its corpus (docs/first-project.md)", 0.0, 100.0);
  v.choice("schedule", c.schedule, {"inverse-sqrt", "constant", "cosine", "step"}, "learning rate after the linear warm-up");
  v.field("warmup", c.warmup, "linear warm-up, updates; see learning-rate", 0, 1000000000);
  v.field("decay-every", c.decay_every, "updates between two decays of schedule step", 1, 1000000000);
  v.field("decay-factor", c.decay_factor, "factor of each decay of schedule step", 0.0, 1.0);
  v.field("final-rate", c.final_rate, "fraction of the peak rate that schedule cosine ends at", 0.0, 1.0);
  v.field("beta1", c.beta1, "Adam: decay of the first moment", 0.0, 0.99999999);
  v.field("beta2", c.beta2, "Adam: decay of the second moment", 0.0, 0.99999999);
  v.field("epsilon", c.epsilon, "Adam, AdaGrad: added to the root of the second moment", 1e-30, 1.0);
  v.field("weight-decay", c.weight_decay, "weight decay per update (times the learning rate)", 0.0, 1.0);
  v.field("clip-norm", c.clip_norm, "global gradient norm is clipped to this; 0 = off", 0.0, 1e9);
  v.field("sgd-after", c.sgd_after, "updates of Adam, after which plain SGD with its own rate and clipping takes over; 0 = never", 0,
          1000000000000);
  v.field("sgd-learning-rate", c.sgd_learning_rate, "learning rate from the change to SGD on, without warm-up", 0.0, 1000.0);
  v.field("sgd-clip-norm", c.sgd_clip_norm, "clip-norm from the change to SGD on; 0 = off", 0.0, 1e9);
  v.field("sgd-halve-after", c.sgd_halve_after, "updates of SGD after which its rate is halved for the first time; 0 = sgd-halve-every", 0,
          1000000000000);
  v.field("sgd-halve-every", c.sgd_halve_every, "updates between the further halvings of that rate; 0 = the rate is never halved", 0,
          1000000000000);
  v.choice("loss-normalization", c.loss_normalization, {"tokens", "sentences"},
           "what the gradient, summed over the batch, is divided by before it is clipped and applied; published rates of SGD presume "
           "sentences, whose gradients are larger by the mean target length");
  v.field("ema", c.ema,
          "exponential moving average of the parameters, decay per update (at first (1+t)/(10+t), if smaller); 0 = off; validated and "
          "saved in place of the raw ones",
          0.0, 0.99999999);
}

}  // namespace starling
