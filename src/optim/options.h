// Options of the optimizer and the learning-rate schedule; part of the `train` section of a configuration.
#pragma once

#include <cstdint>
#include <string>

namespace starling {

struct OptimizerOptions {
  std::string optimizer = "adam";  // adam | adamw
  double learning_rate = 5e-4;     // peak
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double weight_decay = 0.0;              // adam: added to the gradient; adamw: decoupled
  double clip_norm = 1.0;                 // global gradient norm; 0 turns clipping off
  double ema = 0.0;                       // decay per update of the averaged parameters; 0 turns averaging off
  std::string schedule = "inverse-sqrt";  // inverse-sqrt | constant | cosine | step
  int64_t warmup = 4000;                  // updates of linear warm-up
  int64_t decay_every = 10000;            // updates, schedule step
  double decay_factor = 0.5;              // schedule step
  double final_rate = 0.0;                // fraction of the peak that cosine ends at
};

template <class Visitor>
void visit(Visitor& v, OptimizerOptions& c) {
  v.choice("optimizer", c.optimizer, {"adam", "adamw"}, "optimizer; adamw decouples the weight decay");
  v.field("learning-rate", c.learning_rate, "peak learning rate", 0.0, 100.0);
  v.choice("schedule", c.schedule, {"inverse-sqrt", "constant", "cosine", "step"}, "learning rate after the linear warm-up");
  v.field("warmup", c.warmup, "linear warm-up, updates", 0, 1000000000);
  v.field("decay-every", c.decay_every, "updates between two decays of schedule step", 1, 1000000000);
  v.field("decay-factor", c.decay_factor, "factor of each decay of schedule step", 0.0, 1.0);
  v.field("final-rate", c.final_rate, "fraction of the peak rate that schedule cosine ends at", 0.0, 1.0);
  v.field("beta1", c.beta1, "Adam: decay of the first moment", 0.0, 0.99999999);
  v.field("beta2", c.beta2, "Adam: decay of the second moment", 0.0, 0.99999999);
  v.field("epsilon", c.epsilon, "Adam: added to the root of the second moment", 1e-30, 1.0);
  v.field("weight-decay", c.weight_decay, "weight decay per update (times the learning rate)", 0.0, 1.0);
  v.field("clip-norm", c.clip_norm, "global gradient norm is clipped to this; 0 = off", 0.0, 1e9);
  v.field("ema", c.ema,
          "exponential moving average of the parameters, decay per update (at first (1+t)/(10+t), if smaller); 0 = off; validated and "
          "saved in place of the raw ones",
          0.0, 0.99999999);
}

}  // namespace starling
