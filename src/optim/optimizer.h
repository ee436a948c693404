// The optimizer over flat buffers, and the learning-rate schedule. An update takes a range of the parameters, so that a shard of
// them can be updated on its own; the state is flat too.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/range.h"
#include "optim/muon.h"
#include "optim/options.h"

namespace starling {

class Optimizer {
 public:
  // Creates the state for all `count` parameters of the flat buffer, or only for the given ranges of it (in order, not overlapping): a
  // shard.
  Optimizer(Backend& backend, const OptimizerOptions& options, int64_t count) : Optimizer(backend, options, {{0, count}}) {}
  // matrices: the weights that get Muon's steps, by offset; only with optimizer muon. Everything else gets Adam's.
  Optimizer(Backend& backend, const OptimizerOptions& options, std::vector<Range> owned, std::vector<MatrixPlace> matrices = {});

  // Starts the next update; bias correction counts these.
  void begin_update() { begin_update(updates_ + 1); }
  // The same if the run counts its updates differently (asynchronous servers): the change to SGD follows the run's count.
  void begin_update(int64_t of_the_run) { ++updates_, of_the_run_ = of_the_run; }
  // values [begin, end) -= the step of their gradients, which are multiplied by gradient_scale first. The range must lie within an owned
  // one. Each of Muon's matrices that begins in the range is updated as a whole, and its gradient overwritten.
  void update(const Tensor& values, const Tensor& gradients, int64_t begin, int64_t end, double gradient_scale, double rate);
  void update(const Tensor& values, const Tensor& gradients, double gradient_scale, double rate) {
    update(values, gradients, 0, values.count(), gradient_scale, rate);
  }
  // The same for tensors that hold only the elements from `begin` on; without Muon.
  void update_part(const Tensor& values, const Tensor& gradients, int64_t begin, double gradient_scale, double rate);

  // Takes effect at the next update. Bias correction behaves as if beta2 had always had this value.
  void set_beta2(double beta2) { options_.beta2 = beta2; }

  int64_t updates() const { return updates_; }
  void set_updates(int64_t n) { updates_ = of_the_run_ = n; }
  // Clears the moments; bias correction starts again from here.
  void reset_moments();
  // The update after which the moments began.
  int64_t moments_since() const { return moments_since_; }
  void set_moments_since(int64_t n) { moments_since_ = n; }
  // State buffers by name, for checkpoints, with the owned ranges one after another. None for sgd.
  std::vector<std::pair<std::string, Tensor>> state() const;
  // Elements that the next update reads and writes for each parameter.
  double elements_moved() const;
  // Operations of Muon's products for the matrices that begin in that range.
  double flops(int64_t begin, int64_t end) const;

 private:
  // The matrices that begin in a range and get Muon's step in the current update.
  std::span<const MatrixPlace> matrices_in(int64_t begin, int64_t end) const;
  // The step of the current update.
  OptimizerStep step(double scale, double rate) const;
  // Where the state of owned element `begin` lies.
  int64_t state_of(int64_t begin, int64_t end) const;

  Backend& backend_;
  OptimizerOptions options_;
  std::vector<MatrixPlace> matrices_;
  Muon muon_{backend_};
  std::vector<Range> owned_;
  StepStates states_;  // as many as the optimizer has
  int64_t updates_ = 0, moments_since_ = 0, of_the_run_ = 0;
};

// The warm-up, in updates, and the peak rate of a run that ends after update `end`.
struct Warmup {
  double updates, peak;
};
Warmup warmup_of(const OptimizerOptions& options, double end);

// The learning rate of update `step` (counted from 1) of a run that ends after update `end`. It rises linearly from 0 to the peak during
// the warm-up; where warmup_share shortens the warm-up, the peak is higher. Then, by schedule:
//   inverse-sqrt    peak * sqrt(warmup / step)
//   constant        the peak
//   linear, cosine  down to final_rate * peak at the end
//   wsd             the peak, then linearly down over the last decay_share of the run
//   step            times decay_factor every decay_every updates
// After sgd_after updates it is sgd_learning_rate, halved as the options say. It depends on step and end alone, so runs resume exactly.
double learning_rate(const OptimizerOptions& options, int64_t step, double end);

// Whether update `step` (counted from 1) is one of plain SGD, and the norm that its gradient is clipped to (0: no clipping).
bool is_sgd(const OptimizerOptions& options, int64_t step);
double clip_norm(const OptimizerOptions& options, int64_t step);

}  // namespace starling
