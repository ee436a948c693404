// A backend whose ops run later, on another thread, in a memory that is not the host's: a decorator that lets any backend look like a
// device's. Of uploaded numbers its ops read the copies in its memory, never the host's.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "backend/backend.h"
#include "tests/queued/queue.h"

namespace starling {

// One queue and its memory, shared by a backend and its siblings.
struct QueuedDevice {
  WorkQueue queue;
  QueuedMemory memory{queue};

  // Until `body` has run behind everything else.
  void now(std::function<void()> body) { queue.push(std::move(body)), queue.wait(); }
  // The same elements as a tensor of the host's, for the op itself. Refuses tensors of other memories.
  Tensor inner(const Tensor& x) const;
  // The copies of numbers, which somebody must have uploaded.
  template <class T>
  HostDeviceArray<T> inner(const HostDeviceArray<T>& x) const {
    CHECK(x.empty() || x.there(), "an op gets {} numbers that nobody has uploaded", x.size());
    return x.empty() ? HostDeviceArray<T>() : HostDeviceArray<T>::lent({reinterpret_cast<const T*>(inner(x.there()).raw()), x.size()});
  }
  Dropout inner(Dropout d) const;
  AttentionLayout inner(const AttentionLayout& l) const { return {inner(l.query), inner(l.key), l.heads, l.causal, l.first_head}; }
  RelativeBins inner(const RelativeBins& r) const { return {r.reach, inner(r.scores), inner(r.mass), inner(r.dmass), inner(r.dscores)}; }
  Backend::AttentionInput inner(const Backend::AttentionInput& in) const {
    return {inner(in.q), inner(in.kv), in.q_column, in.k_column, in.v_column, inner(in.relative)};
  }
  LossRows inner(const LossRows& r) const { return {inner(r.targets), r.smoothing, r.logit_bound, inner(r.weights), r.r_drop}; }
  LogitsShard inner(const LogitsShard& s) const { return {inner(s.logits), s.first, s.vocabulary, inner(s.top), inner(s.sums)}; }
  Backend::GlobalAttention inner(const Backend::GlobalAttention& in) const {
    return {inner(in.q), inner(in.k), inner(in.v), inner(in.memory)};
  }
  LstmStep inner(const LstmStep& s) const {
    using S = LstmStep;
    return inner_of(s, {&S::gates, &S::recurrent, &S::cell_before, &S::cell, &S::hidden, &S::clipped});
  }
  LstmStepBackward inner(const LstmStepBackward& s) const {
    using S = LstmStepBackward;
    return inner_of(s, {&S::gates, &S::cell_before, &S::cell, &S::dhidden, &S::drecurrent, &S::dcell});
  }
  Ssru inner(const Ssru& s) const {
    Ssru own = inner_of(s, {&Ssru::candidate, &Ssru::forget, &Ssru::before, &Ssru::cell, &Ssru::hidden});
    own.offsets = inner(s.offsets);
    return own;
  }
  SsruBackward inner(const SsruBackward& s) const {
    using S = SsruBackward;
    S own = inner_of(s, {&S::candidate, &S::forget, &S::cell, &S::dhidden, &S::dcandidate, &S::dforget});
    own.offsets = inner(s.offsets);
    return own;
  }
  StepStates inner(const StepStates& states) const {
    StepStates own;
    for (size_t i = 0; i < own.size(); ++i) own[i] = inner(states[i]);
    return own;
  }
  CodeLayout inner(const CodeLayout& layout) const { return layout; }
  // A weight that is packed by the time it is used, and a task that keeps its layout.
  struct LatePacked {
    std::shared_ptr<std::shared_ptr<Packed>> form;
    operator const Packed&() const;
  };
  struct LateCompression {
    Compression task;
    CodeLayout layout;
    operator Compression() const;
  };
  LatePacked inner(const Packed& w) const;
  LateCompression inner(const Compression& c) const;
  // Numbers, which have no tensors in them.
  template <class T>
  requires std::is_trivially_copyable_v<T> T inner(const T& x)
  const { return x; }

 private:
  template <class Task>
  Task inner_of(const Task& task, std::initializer_list<Tensor Task::*> tensors) const {
    Task own = task;
    for (Tensor Task::*t : tensors) own.*t = inner(task.*t);
    return own;
  }
};

class QueuedBackend : public Backend {
 public:
  explicit QueuedBackend(std::unique_ptr<Backend> inner, std::shared_ptr<QueuedDevice> device = std::make_shared<QueuedDevice>());
  ~QueuedBackend() override;

  std::string describe() const override { return inner_->describe(); }
  DType activation() const override { return inner_->activation(); }
  DType parameter() const override { return inner_->parameter(); }
  int threads() const override { return inner_->threads(); }
  Memory& memory() const override { return device_->memory; }
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<QueuedBackend>(inner_->sibling(), device_); }
  bool multiplies_int8() const override { return inner_->multiplies_int8(); }
  int64_t row_multiple(int64_t rows) const override { return inner_->row_multiple(rows); }
  std::shared_ptr<Packed> pack_constant(const Tensor& w, bool transposed) override;

  FlatOps& flat() override { return *flat_; }

#include "backend/ops.inc"

 private:
  Tensor inner(const Tensor& x) const { return device_->inner(x); }
  template <class... Parameters, class... Arguments>
  void defer(void (Backend::*op)(Parameters...), const Arguments&... arguments);

  std::shared_ptr<QueuedDevice> device_;
  std::unique_ptr<Backend> inner_;
  std::unique_ptr<FlatOps> flat_;
};

// The flat ops of `inner`, later (queued_flat.cpp).
std::unique_ptr<FlatOps> make_queued_flat_ops(FlatOps& inner, QueuedDevice& device);

}  // namespace starling
