// The tape: one forward pass, or a piece of it, and the backward pass through it, by eager reverse-mode differentiation. A Var is a value
// and its place on the tape; with recording off the same code is inference. Everything that belongs to one pass is here, so several passes
// can be alive at once, each with an arena of its own. Gradients of activations live in that arena, those of parameters go to the update's
// GradientSum.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/gradients.h"

namespace starling {

class Tape;

// A place in a model where elements are dropped, identified by the name that the model declares, so that its masks depend neither on what
// else a pass computes nor on the order.
struct DropoutSite {
  explicit DropoutSite(std::string_view name);
  uint64_t key;
};

struct Var {
  Tape* tape = nullptr;
  int32_t node = -1;  // -1: not recorded
  Tensor value;
};

class Tape {
 public:
  using Backward = std::function<void(const Tensor& dy)>;

  // Inference: nothing is recorded or dropped.
  Tape(ParameterStore& parameters, Arena& arena) : parameters_(parameters), arena_(arena) {}
  // Training: seed and step key the dropout masks.
  Tape(ParameterStore& parameters, Arena& arena, GradientSum& gradients, uint64_t seed, uint64_t step)
      : Tape(parameters, arena, gradients, seed, step, std::make_shared<std::vector<int>>(parameters.declared().size())) {}
  // Another tape of the same pass: a parameter's gradient is complete when both have added to it.
  Tape another() const { return {parameters_, arena_, *gradients_, seed_, step_, uses_}; }

  ParameterStore& parameters() { return parameters_; }
  Backend& backend() { return parameters_.backend(); }
  bool training() const { return gradients_ != nullptr; }
  // Only in training.
  GradientSum& gradients() { return *gradients_; }

  Tensor allocate(const Shape& shape, DType dtype) { return arena_.allocate(shape, dtype); }
  Tensor allocate_like(const Tensor& t) { return arena_.allocate(t.shape(), t.dtype()); }
  Arena& arena() { return arena_; }
  // Uploads numbers for this pass's ops to where these run.
  template <class T>
  HostDeviceArray<T> upload(std::vector<T> numbers) {
    return HostDeviceArray<T>(std::move(numbers), arena_);
  }

  // The same for several lists, in one transfer.
  template <class T = int32_t>
  std::vector<HostDeviceArray<T>> upload_together(std::initializer_list<std::span<const std::type_identity_t<T>>> lists) {
    constexpr size_t kAligned = 4;  // numbers: a card may read so many at once
    std::vector<T> all;
    std::vector<size_t> begins;
    for (const std::span<const T> list : lists) {
      begins.push_back(all.size());
      all.insert(all.end(), list.begin(), list.end());
      all.resize((all.size() + kAligned - 1) / kAligned * kAligned);
    }
    const HostDeviceArray<T> whole = upload(std::move(all));
    std::vector<HostDeviceArray<T>> parts;
    for (size_t i = 0; i < lists.size(); ++i)
      parts.push_back(whole.part(static_cast<int64_t>(begins[i]), static_cast<int64_t>(lists.begin()[i].size())));
    return parts;
  }

  // A site may be used once per tape. Inactive in inference. first_column: the first of the site's columns that this worker has, if it has
  // only some.
  Dropout dropout(double p, const DropoutSite& site, const RowKeys& rows, int64_t first_column = 0);

  // Records an op: `backward` gets dy and adds to the gradients of the op's inputs.
  Var record(Tensor y, Backward backward);
  // Announces a use of a parameter, whose gradient the backward pass will add.
  void use(const Parameter& p) {
    if (training()) ++(*uses_)[p.index];
  }
  // Must be called once for each use(), after the use's gradient has been added.
  void done(const Parameter& p) {
    if (--(*uses_)[p.index] == 0 && on_gradient_ready) on_gradient_ready(p);
  }

  struct Slot {
    Tensor tensor;
    Write write;
  };
  // Where the next contribution to dx goes. The Var must have been recorded.
  Slot gradient(const Var& x);
  // dx (+)= dy, without a copy where possible; dy must not be needed any more.
  void pass_gradient(const Var& x, const Tensor& dy);

  // backward() runs the recorded ops backwards. A loss calls set_gradient with the gradient of its input when it is computed.
  void set_gradient(const Var& x, const Tensor& dx);
  void backward();

  // Called when this pass has added everything to a parameter's gradient, so that its exchange can start while the pass continues.
  std::function<void(const Parameter&)> on_gradient_ready;

 private:
  Tape(ParameterStore& parameters, Arena& arena, GradientSum& gradients, uint64_t seed, uint64_t step,
       std::shared_ptr<std::vector<int>> uses)
      : parameters_(parameters), arena_(arena), gradients_(&gradients), seed_(seed), step_(step), uses_(std::move(uses)) {}
  struct Node {
    Tensor value, gradient;
    Backward backward;
  };
  ParameterStore& parameters_;
  Arena& arena_;
  GradientSum* gradients_ = nullptr;  // null: inference
  uint64_t seed_ = 0, step_ = 0;
  std::vector<uint64_t> sites_;             // used so far
  std::shared_ptr<std::vector<int>> uses_;  // by parameter, on all tapes of the pass: uses that the backward pass has not reached yet
  std::vector<Node> nodes_;
};

}  // namespace starling
