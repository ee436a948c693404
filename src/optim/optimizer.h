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
  // State for `count` parameters (the length of the flat buffer), or for the given ranges of it only (in order, not overlapping): a shard.
  Optimizer(Backend& backend, const OptimizerOptions& options, int64_t count) : Optimizer(backend, options, {{0, count}}) {}
  // matrices: the weights that get Muon's steps, by offset, of optimizer muon only; all else is Adam's.
  Optimizer(Backend& backend, const OptimizerOptions& options, std::vector<Range> owned, std::vector<MatrixPlace> matrices = {});

  // Starts the next update; bias correction counts these.
  void begin_update() { begin_update(updates_ + 1); }
  // The same where the run counts its updates otherwise (asynchronous servers): the schedule's change to SGD follows those.
  void begin_update(int64_t of_the_run) { ++updates_, of_the_run_ = of_the_run; }
  // values [begin, end) -= step of their gradients, which are multiplied by gradient_scale first. The range lies within an owned one. Of
  // Muon's matrices those that begin in the range get theirs, as a whole, and their gradients are overwritten.
  void update(const Tensor& values, const Tensor& gradients, int64_t begin, int64_t end, double gradient_scale, double rate);
  void update(const Tensor& values, const Tensor& gradients, double gradient_scale, double rate) {
    update(values, gradients, 0, values.count(), gradient_scale, rate);
  }
  // The same of tensors that hold nothing but the elements from `begin` on, without Muon.
  void update_part(const Tensor& values, const Tensor& gradients, int64_t begin, double gradient_scale, double rate);

  // From the next update on. Bias correction is as if it had always been so.
  void set_beta2(double beta2) { options_.beta2 = beta2; }

  int64_t updates() const { return updates_; }
  void set_updates(int64_t n) { updates_ = of_the_run_ = n; }
  // Forgets the moments; bias correction counts from here.
  void reset_moments();
  // The update that the moments begin after.
  int64_t moments_since() const { return moments_since_; }
  void set_moments_since(int64_t n) { moments_since_ = n; }
  // State buffers by name, for checkpoints: the owned ranges one behind the other. None for sgd.
  std::vector<std::pair<std::string, Tensor>> state() const;
  // Elements that the next update reads and writes for each parameter.
  double elements_moved() const;
  // Of Muon's products, for matrices that begin in that range.
  double flops(int64_t begin, int64_t end) const;

 private:
  // Muon's matrices that begin in a range, if the update under way is Muon's.
  std::span<const MatrixPlace> matrices_in(int64_t begin, int64_t end) const;
  // Where the state of owned element `begin` lies.
  int64_t state_of(int64_t begin, int64_t end) const;

  Backend& backend_;
  OptimizerOptions options_;
  std::vector<MatrixPlace> matrices_;
  Muon muon_{backend_};
  std::vector<Range> owned_;
  Tensor first_, second_;  // Adam's moments; AdaGrad's sums of squares in the second; empty for sgd
  int64_t updates_ = 0, moments_since_ = 0, of_the_run_ = 0;
};

// The warm-up of a run that ends after update `end`, in updates, and the peak rate.
struct Warmup {
  double updates, peak;
};
Warmup warmup_of(const OptimizerOptions& options, double end);

// The learning rate of update `step` (counted from 1) of a run that ends after update `end`. Linear warm-up from 0 to the peak, which is
// higher where warmup_share shortens it, then:
// inverse-sqrt: peak * sqrt(warmup / step); constant; linear, cosine: down to final_rate * peak at the end; wsd: the peak, and linear for
// the last decay_share of the run; step: times decay_factor every decay_every. After sgd_after updates: sgd_learning_rate, halved as the
// options say. A function of step and end alone, so runs resume exactly.
double learning_rate(const OptimizerOptions& options, int64_t step, double end);

// Whether update `step` (counted from 1) is one of plain SGD, and the norm that its gradient is clipped to (0: not).
bool is_sgd(const OptimizerOptions& options, int64_t step);
double clip_norm(const OptimizerOptions& options, int64_t step);

}  // namespace starling
