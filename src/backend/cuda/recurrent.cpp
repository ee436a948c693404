// What recurrent models need: steps of LSTM layers and attention with one head.
#include "backend/cuda/kernels/recurrent.h"

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/rows.h"
#include "backend/idle_rows.h"

namespace starling::STARLING_CUDA {
namespace {

struct Lengths {
  int64_t longest = 0, idle = 0;  // tokens of a sentence; rows that no sentence has
};
Lengths lengths_of(const Ints& offsets, int64_t rows) {
  Lengths all;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) all.longest = std::max<int64_t>(all.longest, offsets[b + 1] - offsets[b]);
  all.idle = rows - (offsets.back() - offsets.front());
  return all;
}

}  // namespace

void CudaBackend::lstm_step(const LstmStep& s) {
  const int64_t R = s.hidden.rows(), H = s.hidden.columns();
  const bool narrow = s.cell.dtype() == DType::i16;
  CHECK(s.past == 0 || s.cell.dtype() == s.cell_before.dtype(), "cells of {} after {}", name_of(s.cell.dtype()),
        name_of(s.cell_before.dtype()));
  CHECK(s.gates.rows() == R && s.gates.columns() == 4 * H && s.past <= R && (!narrow || s.bound > 0), "gates {} of a step to {}, past {}",
        s.gates.shape().text(), s.hidden.shape().text(), s.past);
  const int64_t parts = s.clipped && s.bound > 0 ? kernels::lstm_parts(R * H) : 0;
  auto* const counts = parts > 0 ? scratch<double>(0, parts) : nullptr;
  kernels::lstm_step(type(),
                     {.gates = at(s.gates),
                      .recurrent = s.past > 0 ? at<float>(s.recurrent) : nullptr,
                      .cell_before = s.past > 0 ? at(s.cell_before) : nullptr,
                      .cell = at(s.cell),
                      .hidden = at(s.hidden),
                      .rows = R,
                      .width = H,
                      .past = s.past,
                      .narrow_cell = narrow,
                      .tanh_output = s.tanh_output,
                      .bound = static_cast<float>(s.bound),
                      .parts = counts},
                     stream());
  if (parts > 0) add_counts(counts, parts, s.clipped);
}

void CudaBackend::lstm_step_backward(const LstmStepBackward& s) {
  const int64_t R = s.dhidden.rows(), H = s.dhidden.columns();
  CHECK(s.gates.rows() == R && s.gates.columns() == 4 * H && s.past <= R && s.next <= R && s.dcell.rows() >= R,
        "gates {} of the gradient of a step to {}, past {}, next {}", s.gates.shape().text(), s.dhidden.shape().text(), s.past, s.next);
  kernels::lstm_step_backward(type(),
                              {.gates = at(s.gates),
                               .cell_before = s.past > 0 ? at<float>(s.cell_before) : nullptr,
                               .cell = at<float>(s.cell),
                               .dhidden = at(s.dhidden),
                               .drecurrent = s.next > 0 ? at<float>(s.drecurrent) : nullptr,
                               .dcell = at<float>(s.dcell),
                               .rows = R,
                               .width = H,
                               .past = s.past,
                               .next = s.next,
                               .tanh_output = s.tanh_output,
                               .bound = static_cast<float>(s.bound)},
                              stream());
}

void CudaBackend::ssru(const Ssru& s) {
  const int64_t sentences = static_cast<int64_t>(s.offsets.size()) - 1, H = s.cell.columns();
  CHECK(sentences >= 0 && s.candidate.columns() == H && s.forget.columns() == H && s.offsets.back() <= s.cell.rows(),
        "{} sentences of {} in {}", sentences, s.candidate.shape().text(), s.cell.shape().text());
  zero_outside(s.cell, s.offsets);
  zero_outside(s.hidden, s.offsets);
  kernels::ssru(type(),
                {.candidate = at(s.candidate),
                 .forget = at(s.forget),
                 .offsets = at(s.offsets),
                 .before = at<float>(s.before),
                 .cell = at<float>(s.cell),
                 .hidden = at(s.hidden),
                 .sentences = sentences,
                 .width = H},
                stream());
}

void CudaBackend::ssru_backward(const SsruBackward& s) {
  zero_outside(s.dcandidate, s.offsets);
  zero_outside(s.dforget, s.offsets);
  kernels::ssru_backward(type(),
                         {.candidate = at(s.candidate),
                          .forget = at(s.forget),
                          .offsets = at(s.offsets),
                          .cell = at<float>(s.cell),
                          .dhidden = at(s.dhidden),
                          .dcandidate = at(s.dcandidate),
                          .dforget = at(s.dforget),
                          .sentences = static_cast<int64_t>(s.offsets.size()) - 1,
                          .width = s.cell.columns()},
                         stream());
}

kernels::GlobalAttention CudaBackend::global_attention_task(const GlobalAttention& in, const AttentionLayout& layout,
                                                            const Tensor& weights) const {
  const int64_t A = in.q.columns();
  const Ints &query = layout.query, &key = layout.key;
  CHECK(query.size() == key.size() && !query.empty(), "sentences of {} and {} rows", query.size(), key.size());
  int64_t pairs = 0;
  for (size_t b = 0; b + 1 < query.size(); ++b) pairs += int64_t{query[b + 1] - query[b]} * (key[b + 1] - key[b]);
  CHECK(weights.count() >= pairs && in.k.columns() == A && in.memory.rows() == in.k.rows() && in.q.dtype() == activation_ &&
            in.k.dtype() == activation_ && in.memory.dtype() == activation_ && query.back() <= in.q.rows() && key.back() <= in.k.rows(),
        "global attention of {} {} to {} {} over {} {} with {} weights for {}", name_of(in.q.dtype()), in.q.shape().text(),
        name_of(in.k.dtype()), in.k.shape().text(), name_of(in.memory.dtype()), in.memory.shape().text(), weights.count(), pairs);
  const Lengths queries = lengths_of(query, in.q.rows()), keys = lengths_of(key, in.k.rows());
  return {.q = at(in.q),
          .k = at(in.k),
          .memory = at(in.memory),
          .v = at<float>(in.v),
          .query = at(query),
          .key = at(key),
          .sentences = static_cast<int64_t>(query.size()) - 1,
          .width = A,
          .columns = in.memory.columns(),
          .longest_query = queries.longest,
          .longest_key = keys.longest,
          .idle_queries = queries.idle,
          .idle_keys = keys.idle};
}

void CudaBackend::global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) {
  CHECK(y.rows() == in.q.rows() && y.columns() == in.memory.columns(), "global attention of {} over {} into {}", in.q.shape().text(),
        in.memory.shape().text(), y.shape().text());
  kernels::global_attention(type(), {global_attention_task(in, layout, weights), at(y), at<float>(weights)}, stream());
}

void CudaBackend::global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights,
                                            const Tensor& dy, const Tensor& dweights, const Tensor& dq, const Tensor& dk,
                                            const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) {
  CHECK(bool(in.v) == bool(dv), "global attention {} v and {} its gradient", in.v ? "with" : "without", dv ? "with" : "without");
  CHECK(dq.shape() == in.q.shape() && dk.shape() == in.k.shape() && dmemory.shape() == in.memory.shape() && dy.rows() == dq.rows() &&
            dy.columns() == dmemory.columns(),
        "gradients {}, {} and {} of global attention of {} to {} over {}, from {}", dq.shape().text(), dk.shape().text(),
        dmemory.shape().text(), in.q.shape().text(), in.k.shape().text(), in.memory.shape().text(), dy.shape().text());
  const kernels::GlobalAttention task = global_attention_task(in, layout, weights);
  const int64_t A = task.width, rows = dv ? kernels::dv_parts(task.sentences, task.longest_query) : 0, parts = kernels::sum_parts(rows);
  auto* const dscores = scratch<float>(0, weights.count());
  auto *const of_blocks = scratch<float>(1, rows * A), *const sums = scratch<float>(2, parts * A);
  kernels::global_attention_backward(type(),
                                     {.of = task,
                                      .weights = at<float>(weights),
                                      .dy = at(dy),
                                      .dweights = at<float>(dweights),
                                      .dscores = dscores,
                                      .dq = at(dq),
                                      .dk = at(dk),
                                      .dmemory = at(dmemory),
                                      .accumulate_memory = dmemory_write == Write::accumulate,
                                      .dv_parts = of_blocks},
                                     stream());
  if (!dv) return;
  kernels::column_sums(kernels::Type::f32, {of_blocks, sums, rows, A}, stream());
  kernels::add_parts({sums, parts, A, at<float>(dv), dv_write == Write::accumulate}, stream());
}

}  // namespace starling::STARLING_CUDA
