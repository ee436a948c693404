// A backend whose ops run later, on another thread, in a memory that is not the host's: a decorator that lets any backend look like a
// device's. Of uploaded numbers its ops read the copies in its memory, never the host's.
#pragma once

#include <memory>
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

#include "backend/op_overrides.inc"

 private:
  template <class T>
  T inner(const T& x) const {
    return device_->inner(x);
  }
  void later(std::function<void()> body) { device_->queue.push(std::move(body)); }

  std::shared_ptr<QueuedDevice> device_;
  std::unique_ptr<Backend> inner_;
  std::unique_ptr<FlatOps> flat_;
};

// The flat ops of `inner`, later (queued_flat.cpp).
std::unique_ptr<FlatOps> make_queued_flat_ops(FlatOps& inner, QueuedDevice& device);

}  // namespace starling
