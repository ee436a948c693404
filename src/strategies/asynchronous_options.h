// Options of the asynchronous family: workers send gradients to servers and fetch parameters from them, each at its own pace. Presets are
// named sets of these values (strategies/presets.cpp).
#pragma once

#include <cstdint>

namespace starling {

struct AsynchronousOptions {
  int64_t push_interval = 1, fetch_interval = 1;  // a worker's own updates
  double push_clip = 0;                           // norm, per token (or sentence); 0: off
  double local_learning_rate = 0;                 // rate of plain SGD at the worker; 0: none
  int64_t sum_pushes = 1;                         // k pushes per step of a server; 0: as many as there are workers
  bool wait_for_step = false;
  double delay_compensation = 0;  // lambda
};

template <class Visitor>
void visit(Visitor& v, AsynchronousOptions& c) {
  v.field("push-interval", c.push_interval, "updates whose gradients a worker sums before it sends them", 1, 1000000);
  v.field("fetch-interval", c.fetch_interval, "updates that a worker makes between two fetches of the parameters", 1, 1000000);
  v.field("push-clip", c.push_clip,
          "what a worker sends is clipped to this norm per token (or sentence), in addition to train.clip-norm, which applies to each "
          "update of the worker; 0 = off",
          0.0, 1e9);
  v.field("local-learning-rate", c.local_learning_rate,
          "a worker also applies its gradients to its own parameters at once, by plain SGD with this rate; 0 = it does not", 0.0, 1000.0);
  v.field("sum-pushes", c.sum_pushes,
          "pushes that a server sums before it updates; 1 = it updates after each; 0 = as many as there are workers", 0, 1000000);
  v.field("wait-for-step", c.wait_for_step,
          "a fetch waits until the worker's last push has been applied: with sum-pushes 0 this is synchronous training, with "
          "fewer, the slowest workers are not waited for");
  v.field("delay-compensation", c.delay_compensation, "lambda of g + lambda g^2 (p - p_fetched), which corrects a late gradient; 0 = off",
          0.0, 1e9);
}

}  // namespace starling
