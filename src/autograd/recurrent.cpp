#include "autograd/recurrent.h"

#include <algorithm>
#include <numeric>

#include "base/range.h"

namespace starling {
namespace {

// Few distinct row counts mean few distinct matrix products: the rows behind a step's are multiplied along, and ignored.
constexpr int64_t kStepMultiple = 16;

// The order in which an LSTM passes through the steps.
struct Walk {
  TimeOrder order;
  bool reverse;
  int64_t at(int64_t i) const { return reverse ? order.steps() - 1 - i : i; }
  // Rows of step t whose sentence has been running before it.
  int64_t past(int64_t t) const {
    const int64_t before = reverse ? t + 1 : t - 1;
    return before < 0 || before >= order.steps() ? 0 : std::min(order.count(t), order.count(before));
  }
  int64_t before(int64_t t) const { return order.step[reverse ? t + 1 : t - 1]; }  // first row of the step before t
  // Rows of step t that the step after it continues.
  int64_t next(int64_t t) const {
    const int64_t after = reverse ? t - 1 : t + 1;
    return after < 0 || after >= order.steps() ? 0 : past(after);
  }
};

void zero_idle(const Tensor& x, int64_t used) {
  if (used < x.rows()) x.rows(used, x.rows()).zero();
}

}  // namespace

TimeOrder time_order(Tape& tape, const PackedTokens& sentences, int64_t multiple) {
  const int64_t B = sentences.sentences();
  const auto length = [&](int32_t b) { return sentences.offsets[b + 1] - sentences.offsets[b]; };
  std::vector<int32_t> by_length(B);
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(), [&](int32_t a, int32_t b) { return length(a) > length(b); });
  const auto rows = static_cast<size_t>(round_up(std::max<int64_t>(sentences.count(), 1), multiple));
  TimeOrder order;
  std::vector<int32_t> row_of(rows, -1), packed, earlier(rows, -1), later(rows, -1);
  order.step.push_back(0);
  for (int64_t running = B, t = 0;; ++t) {
    while (running > 0 && length(by_length[running - 1]) <= t) --running;
    if (running == 0) break;
    for (int64_t r = 0; r < running; ++r) {
      const int32_t from = sentences.offsets[by_length[r]] + static_cast<int32_t>(t);
      const auto here = static_cast<int32_t>(packed.size());
      row_of[from] = here;
      if (t > 0) earlier[here] = row_of[from - 1], later[row_of[from - 1]] = here;
      packed.push_back(from);
    }
    order.step.push_back(static_cast<int32_t>(packed.size()));
  }
  packed.resize(rows, -1);
  order.row_of = tape.place(std::move(row_of)), order.packed = tape.place(std::move(packed));
  if (tape.training()) order.earlier = tape.place(std::move(earlier)), order.later = tape.place(std::move(later));
  return order;
}

Var lstm(const Var& gates, Parameter& w, const TimeOrder& order, const LstmOptions& o, const Tensor& clipped) {
  Tape& tape = *gates.tape;
  Backend& backend = tape.backend();
  const int64_t N = gates.value.rows(), H = w.shape[0];
  CHECK(gates.value.columns() == 4 * H && w.shape[1] == 4 * H, "gates {} for a recurrent weight {}", gates.value.shape().text(),
        w.shape.text());
  const Walk walk{order, o.reverse};
  const Tensor hidden = tape.allocate({N, H}, backend.activation());
  const bool narrow = w.quantized && o.bound > 0;
  const Tensor cell = tape.allocate({N, H}, narrow ? DType::i16 : backend.parameter());
  zero_idle(hidden, order.step.back());
  const int64_t most = order.steps() > 0 ? round_up(order.count(0), kStepMultiple) : 0;
  const auto mark = tape.arena().mark();
  const Tensor recurrent = tape.allocate({most, 4 * H}, backend.parameter());
  for (int64_t i = 0; i < order.steps(); ++i) {
    const int64_t t = walk.at(i), begin = order.step[t], end = order.step[t + 1], past = walk.past(t);
    LstmStep step;
    step.gates = gates.value.rows(begin, end), step.cell = cell.rows(begin, end), step.hidden = hidden.rows(begin, end);
    step.past = past, step.tanh_output = o.tanh_output, step.bound = o.bound, step.clipped = clipped;
    if (past > 0) {
      const int64_t before = walk.before(t), m = std::min(round_up(past, kStepMultiple), N - before);
      step.recurrent = recurrent.rows(0, m);
      backend.linear(hidden.rows(before, before + m), tape.parameters().packed(w, false), Tensor(), step.recurrent, Activation::none,
                     Write::overwrite);
      step.cell_before = cell.rows(before, before + past);
    }
    backend.lstm_step(step);
  }
  tape.arena().release(mark);
  tape.use(w);
  return tape.record(hidden, [=, &tape, &backend, &w](const Tensor& dy) {
    const Tensor& d = gates.value;  // the activated gates become their own gradients
    const auto scratch = tape.arena().mark();
    const Tensor drecurrent = tape.allocate({most, H}, backend.parameter()), dcell = tape.allocate({most, H}, backend.parameter());
    for (int64_t i = walk.order.steps() - 1; i >= 0; --i) {
      const int64_t t = walk.at(i), begin = walk.order.step[t], end = walk.order.step[t + 1], past = walk.past(t);
      LstmStepBackward step;
      step.gates = d.rows(begin, end), step.cell = cell.rows(begin, end), step.dhidden = dy.rows(begin, end);
      step.past = past, step.next = walk.next(t), step.tanh_output = o.tanh_output, step.bound = o.bound;
      step.drecurrent = drecurrent, step.dcell = dcell;
      if (past > 0) step.cell_before = cell.rows(walk.before(t), walk.before(t) + past);
      backend.lstm_step_backward(step);
      if (past == 0) continue;
      const int64_t m = std::min(round_up(past, kStepMultiple), N - begin);
      backend.linear(d.rows(begin, begin + m), tape.parameters().packed(w, true), Tensor(), drecurrent.rows(0, m), Activation::none,
                     Write::overwrite);
    }
    zero_idle(d, walk.order.step.back());
    const Tensor hidden_before = tape.allocate({N, H}, backend.activation());
    backend.gather_rows(hidden, o.reverse ? walk.order.later : walk.order.earlier, hidden_before, Write::overwrite);
    backend.weight_gradient(hidden_before, d, w.gradient, tape.gradients().next_write(w));
    tape.done(w);
    tape.arena().release(scratch);
    tape.set_gradient(gates, d);
  });
}

Var dropout(const Var& x, const Dropout& mask) {
  if (!mask.active()) return x;
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate_like(x.value);
  backend.add_dropout(Tensor(), x.value, mask, y);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dx = tape.gradient(x);
    backend.dropout_backward(dy, mask, dx.tensor, dx.write);
  });
}

Var concat(const Var& a, const Var& b) {
  Tape& tape = *a.tape;
  Backend& backend = tape.backend();
  const int64_t A = a.value.columns(), B = b.value.columns();
  const Tensor y = tape.allocate({a.value.rows(), A + B}, backend.activation());
  backend.copy_columns(a.value, 0, y, 0, A, Write::overwrite);
  backend.copy_columns(b.value, 0, y, A, B, Write::overwrite);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto da = tape.gradient(a), db = tape.gradient(b);
    backend.copy_columns(dy, 0, da.tensor, 0, A, da.write);
    backend.copy_columns(dy, A, db.tensor, 0, B, db.write);
  });
}

Var gather_rows(const Var& x, const Ints& index, const Ints& inverse) {
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  CHECK(static_cast<int64_t>(inverse.size()) == x.value.rows(), "{} inverse places for {} rows", inverse.size(), x.value.rows());
  const Tensor y = tape.allocate({static_cast<int64_t>(index.size()), x.value.columns()}, backend.activation());
  backend.gather_rows(x.value, index, y, Write::overwrite);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dx = tape.gradient(x);
    backend.gather_rows(dy, inverse, dx.tensor, dx.write);
  });
}

Var clamp(const Var& x, double bound, const Tensor& clipped) {
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate_like(x.value);
  backend.clamp(x.value, bound, y, clipped);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dx = tape.gradient(x);
    backend.clamp_backward(x.value, bound, dy, dx.tensor, dx.write);
  });
}

Tensor score_vector(Tape& tape, const Parameter* v, const Parameter* scale) {
  if (!v || !scale) return v ? v->value : Tensor();
  const Tensor y = tape.allocate(v->shape, v->value.dtype());
  tape.backend().flat().rescale(v->value, scale->value, y);
  return y;
}

Var global_attention(const Var& q, const Var& k, const Var& memory, Parameter* v, Parameter* scale, const AttentionLayout& layout) {
  Tape& tape = *q.tape;
  Backend& backend = tape.backend();
  const Backend::GlobalAttention input{q.value, k.value, score_vector(tape, v, scale), memory.value};
  int64_t pairs = 0;
  for (size_t b = 0; b + 1 < layout.query.size(); ++b)
    pairs += int64_t{layout.query[b + 1] - layout.query[b]} * (layout.key[b + 1] - layout.key[b]);
  const Tensor y = tape.allocate({q.value.rows(), memory.value.columns()}, backend.activation());
  const Tensor weights = tape.allocate({std::max<int64_t>(pairs, 1)}, backend.parameter());
  backend.global_attention(input, layout, y, weights);
  if (v) tape.use(*v);
  if (scale) tape.use(*scale);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dq = tape.gradient(q), dk = tape.gradient(k), dmemory = tape.gradient(memory);
    CHECK(dq.write == Write::overwrite && dk.write == Write::overwrite, "queries and keys have one use");
    Tensor dv;
    if (v) dv = scale ? tape.allocate(v->shape, backend.parameter()) : v->gradient;
    const Write dv_write = v && !scale ? tape.gradients().next_write(*v) : Write::overwrite;
    backend.global_attention_backward(input, layout, weights, dy, dq.tensor, dk.tensor, dmemory.tensor, dmemory.write, dv, dv_write);
    if (scale) {
      tape.gradients().next_write(*scale);  // both are always written together
      backend.flat().rescale_backward(dv, v->value, scale->value, v->gradient, scale->gradient, tape.gradients().next_write(*v));
    }
    if (v) tape.done(*v);
    if (scale) tape.done(*scale);
  });
}

}  // namespace starling
