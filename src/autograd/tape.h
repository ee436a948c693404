// The tape: eager reverse-mode differentiation. A Var is a value and its place on the tape; with recording off the same code is
// inference. Gradients of activations live in the step's arena, those of parameters in the flat buffer of the ParameterStore.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "autograd/parameters.h"

namespace starling {

class Tape;

struct Var {
  Tape* tape = nullptr;
  int32_t node = -1;  // -1: not recorded
  Tensor value;
};

class Tape {
 public:
  using Backward = std::function<void(const Tensor& dy)>;

  // seed and step key the dropout masks; `training` turns dropout on and recording with it.
  Tape(ParameterStore& parameters, Arena& arena, bool training, uint64_t seed = 0, uint64_t step = 0)
      : parameters_(parameters), arena_(arena), training_(training), seed_(seed), step_(step) {}

  ParameterStore& parameters() { return parameters_; }
  Backend& backend() { return parameters_.backend(); }
  bool training() const { return training_; }

  Tensor allocate(const Shape& shape, DType dtype) { return arena_.allocate(shape, dtype); }
  Tensor allocate_like(const Tensor& t) { return arena_.allocate(t.shape(), t.dtype()); }
  Arena& arena() { return arena_; }

  // Each call is one dropout site; sites are numbered in the order of the forward pass.
  Dropout dropout(double p, const RowKeys* rows);

  // `backward` gets dy and adds to the gradients of the op's inputs.
  Var record(Tensor y, Backward backward);
  // Holds what the recorded closures refer to until backward() has run.
  void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }
  void use(Parameter& p) { p.uses += training_; }
  // To be called once for each use(), when the use's gradient has been added.
  void done(Parameter& p) {
    if (--p.uses == 0 && on_gradient_ready) on_gradient_ready(p);
  }

  struct Slot {
    Tensor tensor;
    Write write;
  };
  // Where the next contribution to dx goes. The Var must have been recorded.
  Slot gradient(const Var& x);
  // dx (+)= dy without a copy where possible: dy must not be needed any more.
  void pass_gradient(const Var& x, const Tensor& dy);

  // Runs the recorded ops backwards. A loss puts the gradient of its input with set_gradient when it is computed.
  void set_gradient(const Var& x, const Tensor& dx);
  void backward();

  // Fired when a parameter's gradient is complete: an exchange of gradients can start while the pass goes on.
  std::function<void(Parameter&)> on_gradient_ready;

 private:
  struct Node {
    Tensor value, gradient;
    Backward backward;
  };
  ParameterStore& parameters_;
  Arena& arena_;
  bool training_;
  uint64_t seed_, step_, sites_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace starling
