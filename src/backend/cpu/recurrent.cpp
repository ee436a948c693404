// What recurrent models need: steps of LSTM layers and attention with one head.
#include "backend/cpu/cpu_backend.h"
#include "backend/idle_rows.h"

namespace starling {
namespace {

// A few microseconds of work per thread; less is not worth a second thread.
constexpr int64_t kCells = 2048;   // of an LSTM step
constexpr int64_t kPairs = 65536;  // elements of queries with those of keys

}  // namespace

void CpuBackend::lstm_step(const LstmStep& s) {
  CHECK(s.past == 0 || s.cell.dtype() == s.cell_before.dtype(), "cells of {} after {}", name_of(s.cell.dtype()),
        name_of(s.cell_before.dtype()));
  kernels::LstmTask t{};
  t.gates = s.gates.raw();
  t.recurrent = s.past > 0 ? s.recurrent.data<float>() : nullptr;
  t.cell_before = s.cell_before.raw();
  t.cell = s.cell.raw();
  t.hidden = s.hidden.raw();
  t.width = s.hidden.columns();
  t.past = s.past;
  t.narrow_cell = s.cell.dtype() == DType::i16;
  t.tanh_output = s.tanh_output;
  t.bound = static_cast<float>(s.bound);
  add_number(s.clipped, counted(s.hidden.count(), kCells, [&](int64_t begin, int64_t end) { return kernels_.lstm_step(t, begin, end); }));
}

void CpuBackend::lstm_step_backward(const LstmStepBackward& s) {
  kernels::LstmBackwardTask t{};
  t.gates = s.gates.raw();
  t.cell_before = s.past > 0 ? s.cell_before.data<float>() : nullptr;
  t.cell = s.cell.data<float>();
  t.dhidden = s.dhidden.raw();
  t.drecurrent = s.next > 0 ? s.drecurrent.data<float>() : nullptr;
  t.dcell = s.dcell.data<float>();
  t.width = s.dhidden.columns();
  t.past = s.past;
  t.next = s.next;
  t.tanh_output = s.tanh_output;
  t.bound = static_cast<float>(s.bound);
  ranges(s.dhidden.count(), kCells, [&](int64_t begin, int64_t end, int) { kernels_.lstm_step_backward(t, begin, end); });
}

// One task per sentence, with the rows that it has in every tensor.
template <class F>
void CpuBackend::each_ssru(const Ints& offsets, const Tensor& candidate, const Tensor& forget, const Tensor& cell, F f) {
  const int64_t sentences = static_cast<int64_t>(offsets.size()) - 1, H = cell.columns();
  CHECK(sentences >= 0 && candidate.columns() == H && forget.columns() == H && offsets.back() <= cell.rows(), "{} sentences of {} in {}",
        sentences, candidate.shape().text(), cell.shape().text());
  ranges(sentences, 1 + kCells / H, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t b = begin; b < end; ++b) {
      kernels::SsruTask t{};
      t.candidate = element(candidate, offsets[b], 0);
      t.forget = element(forget, offsets[b], 0);
      t.rows = offsets[b + 1] - offsets[b];
      t.width = H;
      t.cell = cell.data<float>() + offsets[b] * H;
      if (t.rows > 0) f(t, b, thread);
    }
  });
}

void CpuBackend::ssru(const Ssru& s) {
  zero_outside(s.cell, s.offsets);
  zero_outside(s.hidden, s.offsets);
  each_ssru(s.offsets, s.candidate, s.forget, s.cell, [&](kernels::SsruTask& t, int64_t b, int) {
    t.before = s.before ? s.before.data<float>() + b * t.width : nullptr;
    t.hidden = element(s.hidden, s.offsets[b], 0);
    kernels_.ssru(t);
  });
}

void CpuBackend::ssru_backward(const SsruBackward& s) {
  zero_outside(s.dcandidate, s.offsets);
  zero_outside(s.dforget, s.offsets);
  reserve_scratch(s.cell.columns());
  each_ssru(s.offsets, s.candidate, s.forget, s.cell, [&](kernels::SsruTask& t, int64_t b, int thread) {
    t.dhidden = element(s.dhidden, s.offsets[b], 0);
    t.dcandidate = element(s.dcandidate, s.offsets[b], 0);
    t.dforget = element(s.dforget, s.offsets[b], 0);
    kernels_.ssru_backward(t, scratch(thread));
  });
}

// One task per sentence of global attention; f also gets those without queries or keys.
template <class F>
void CpuBackend::each_sentence(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights, F f) {
  const int64_t sentences = static_cast<int64_t>(layout.query.size()) - 1, A = in.q.columns(), D = in.memory.columns();
  int64_t largest = 0;
  first_weight_.assign(1, 0);
  for (int64_t b = 0; b < sentences; ++b) {
    const int64_t queries = layout.query[b + 1] - layout.query[b], keys = layout.key[b + 1] - layout.key[b];
    if (queries > 0) largest = std::max(largest, kernels_.global_attention_scratch(queries, keys, A, D));
    first_weight_.push_back(first_weight_.back() + queries * keys);
  }
  CHECK(weights.count() >= first_weight_.back() && in.k.columns() == A && in.q.dtype() == activation_ && in.k.dtype() == activation_ &&
            in.memory.dtype() == activation_,
        "global attention of {} {} to {} {} over {} {} with {} weights for {}", name_of(in.q.dtype()), in.q.shape().text(),
        name_of(in.k.dtype()), in.k.shape().text(), name_of(in.memory.dtype()), in.memory.shape().text(), weights.count(),
        first_weight_.back());
  reserve_scratch(largest);
  float* const p = weights.data<float>();
  const float* const v = in.v ? in.v.data<float>() : nullptr;
  take_chunks(first_weight_.back() * (A + D) > kPairs ? threads_ : 1, sentences, [&](int64_t b, int thread) {
    kernels::GlobalAttentionTask t{};
    t.q = element(in.q, layout.query[b], 0), t.k = element(in.k, layout.key[b], 0), t.v = v,
    t.memory = element(in.memory, layout.key[b], 0);
    t.queries = layout.query[b + 1] - layout.query[b];
    t.keys = layout.key[b + 1] - layout.key[b];
    t.width = A;
    t.values = D;
    t.weights = p + first_weight_[b];
    f(t, b, scratch(thread));
  });
}

void CpuBackend::global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) {
  zero_outside(y, layout.query);
  each_sentence(in, layout, weights, [&](kernels::GlobalAttentionTask& t, int64_t b, float* scratch) {
    if (t.queries == 0) return;  // a sentence that is finished while others are decoded
    if (t.keys == 0) return y.rows(layout.query[b], layout.query[b + 1]).zero();
    t.y = element(y, layout.query[b], 0);
    kernels_.global_attention(t, scratch);
  });
}

void CpuBackend::global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights,
                                           const Tensor& dy, const Tensor& dweights, const Tensor& dq, const Tensor& dk,
                                           const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) {
  CHECK(bool(in.v) == bool(dv), "global attention {} v and {} its gradient", in.v ? "with" : "without", dv ? "with" : "without");
  const int64_t sentences = static_cast<int64_t>(layout.query.size()) - 1, A = in.q.columns();
  zero_outside(dq, layout.query);
  zero_outside(dk, layout.key);
  if (dmemory_write == Write::overwrite) zero_outside(dmemory, layout.key);
  partial_.assign(static_cast<size_t>(dv ? sentences * A : 0), 0.0f);  // dv of each sentence, summed below in their order
  each_sentence(in, layout, weights, [&](kernels::GlobalAttentionTask& t, int64_t b, float* scratch) {
    const int64_t query = layout.query[b], key = layout.key[b];
    if (t.queries == 0 || t.keys == 0) {
      dq.rows(query, layout.query[b + 1]).zero();
      dk.rows(key, layout.key[b + 1]).zero();
      if (dmemory_write == Write::overwrite) dmemory.rows(key, layout.key[b + 1]).zero();
      return;
    }
    t.dy = element(dy, query, 0);
    t.dq = element(dq, query, 0);
    t.dk = element(dk, key, 0);
    t.dmemory = element(dmemory, key, 0);
    t.accumulate = dmemory_write == Write::accumulate;
    t.dweights = dweights ? dweights.data<float>() + first_weight_[b] : nullptr;
    t.dv = dv ? partial_.data() + b * A : nullptr;
    kernels_.global_attention_backward(t, scratch);
  });
  if (!dv) return;
  if (dv_write == Write::overwrite) dv.zero();
  ranges(A, 64, [&](int64_t begin, int64_t end, int) { wide_.column_sums(partial_.data(), dv.data<float>(), sentences, A, begin, end); });
}

}  // namespace starling
