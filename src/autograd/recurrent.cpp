#include "autograd/recurrent.h"

#include <algorithm>

#include "autograd/ops.h"
#include "autograd/shards.h"
#include "base/range.h"

namespace starling {
namespace {

// Few distinct row counts mean few distinct matrix products, so a step's product also computes some rows behind the step's, which are
// ignored.
constexpr int64_t kStepMultiple = 16;

// The order in which an LSTM passes through the steps. Those beside a piece are -1 and T.
struct Walk {
  TimeOrder order;
  bool reverse;
  int64_t at(int64_t i) const { return reverse ? order.steps() - 1 - i : i; }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t - 1; }
  int64_t after(int64_t t) const { return reverse ? t - 1 : t + 1; }
  // Rows of step t whose sentence has been running before it, and those that the step after it continues.
  int64_t past(int64_t t) const { return std::min(order.count(t), order.count(before(t))); }
  int64_t next(int64_t t) const { return std::min(order.count(t), order.count(after(t))); }
};

// The gradient of the state that a piece has left.
struct StateGradient {
  Tensor hidden, cell;
};

// This worker's units of a layer in shards. Hidden states are whole on all workers, since each unit needs all of them.
struct Units {
  Units(Tape& tape, const Parameter& w)
      : backend(&tape.backend()),
        group(tape.parameters().is_cut(w) ? tape.parameters().shards() : nullptr),
        here(w.shape[1] / 4),
        first(tape.parameters().first_here(w)) {}
  // own = these columns of whole.
  void take(const Tensor& whole, const Tensor& own) const { backend->copy_columns(whole, first, own, 0, here, Write::overwrite); }
  void spread(const Tensor& own, const Tensor& whole) const { join_columns(*backend, own, first, whole, *group); }
  Backend* backend;
  ShardGroup* group;  // null: all units are here
  int64_t here, first;
};

void zero_idle(const Tensor& x, int64_t used) {
  if (used < x.rows()) x.rows(used, x.rows()).zero();
}

}  // namespace

Var lstm(const Var& gates, Parameter& w, const TimeOrder& order, const LstmOptions& o, const Tensor& clipped, LstmState* state) {
  Tape& tape = *gates.tape;
  Backend& backend = tape.backend();
  const Units units(tape, w);
  const int64_t N = gates.value.rows(), H = w.shape[0], T = order.steps();
  CHECK(gates.value.columns() == w.shape[1] && w.whole[1] == 4 * H, "gates {} for a recurrent weight {}", gates.value.shape().text(),
        w.shape.text());
  const Walk walk{order, o.reverse};
  const int64_t first = walk.at(0), last = walk.at(T - 1), begun = T > 0 ? walk.past(first) : 0, going_on = T > 0 ? walk.next(last) : 0;
  CHECK(begun + going_on == 0 || state, "a piece of time without a state");
  LstmState from;  // the state that the first step continues from
  if (begun > 0) {
    CHECK(state->hidden.value && state->hidden.value.rows() >= begun, "no state of the {} sentences that have begun", begun);
    from = {move_to(tape, state->hidden), move_to(tape, state->cell)};
  }
  const Tensor hidden = tape.allocate({N, H}, backend.activation());
  const bool narrow = w.quantized && o.bound > 0;
  const Tensor cell = tape.allocate({N, units.here}, narrow ? DType::i16 : backend.parameter());
  zero_idle(hidden, order.tokens());
  const int64_t most = T > 0 ? round_up(order.count(0), kStepMultiple) : 0;
  // Of the step that comes before t in the walk, with the rows behind it.
  const auto before = [=](const Tensor& here, const Var& carried, int64_t t) {
    return t == first ? carried.value : here.rows(walk.order.step[walk.before(t)], N);
  };
  const auto mark = tape.arena().mark();
  const Tensor recurrent = tape.allocate({most, 4 * units.here}, backend.parameter());
  const Tensor own = units.group ? tape.allocate({most, units.here}, backend.activation()) : Tensor();
  for (int64_t i = 0; i < T; ++i) {
    const int64_t t = walk.at(i), begin = order.step[t], end = order.step[t + 1], past = walk.past(t);
    LstmStep step;
    step.gates = gates.value.rows(begin, end);
    step.cell = cell.rows(begin, end);
    step.hidden = hidden.rows(begin, end);
    if (own) step.hidden = own.rows(0, end - begin);
    step.past = past;
    step.tanh_output = o.tanh_output;
    step.bound = o.bound;
    step.clipped = clipped;
    if (past > 0) {
      const Tensor hidden_before = before(hidden, from.hidden, t);
      const int64_t m = std::min(round_up(past, kStepMultiple), hidden_before.rows());
      step.recurrent = recurrent.rows(0, m);
      backend.linear(hidden_before.rows(0, m), tape.parameters().packed(w, false), Tensor(), step.recurrent, Activation::none,
                     Write::overwrite);
      step.cell_before = before(cell, from.cell, t).rows(0, past);
    }
    backend.lstm_step(step);
    if (own) units.spread(step.hidden, hidden.rows(begin, end));
  }
  tape.arena().release(mark);
  tape.use(w);
  const auto flows_back = std::make_shared<StateGradient>();
  const Var y = tape.record(hidden, [=, &tape, &backend, &w](const Tensor& dy) {
    const Tensor& d = gates.value;  // the activated gates become their own gradients
    const auto start = tape.arena().mark();
    const Tensor drecurrent = tape.allocate({most, H}, backend.parameter()), dcell = tape.allocate({most, units.here}, backend.parameter());
    const auto scratch = begun > 0 ? tape.arena().mark() : start;  // in the end these two are the gradients of the state
    // Of the units here.
    const Tensor down = units.group ? tape.allocate({N, units.here}, dy.dtype()) : dy;
    const Tensor back = units.group ? tape.allocate({most, units.here}, backend.parameter()) : drecurrent;
    if (units.group) units.take(dy, down);
    for (int64_t i = T - 1; i >= 0; --i) {
      const int64_t t = walk.at(i), begin = walk.order.step[t], end = walk.order.step[t + 1], past = walk.past(t);
      LstmStepBackward step;
      step.gates = d.rows(begin, end);
      step.cell = cell.rows(begin, end);
      step.dhidden = down.rows(begin, end);
      step.past = past;
      step.next = walk.next(t);
      step.tanh_output = o.tanh_output;
      step.bound = o.bound;
      step.drecurrent = back;
      step.dcell = dcell;
      if (t == last) {
        if (!flows_back->hidden) step.next = 0;  // what came after has no gradient
        if (!units.group)
          step.drecurrent = flows_back->hidden;
        else if (step.next > 0)
          units.take(flows_back->hidden.rows(0, step.next), back);
        if (step.next > 0) dcell.rows(0, step.next).copy_from(flows_back->cell.rows(0, step.next));
      }
      if (past > 0) step.cell_before = before(cell, from.cell, t).rows(0, past);
      backend.lstm_step_backward(step);
      if (past == 0) continue;
      const int64_t m = std::min(round_up(past, kStepMultiple), N - begin);
      backend.linear(d.rows(begin, begin + m), tape.parameters().packed(w, true), Tensor(), drecurrent.rows(0, m), Activation::none,
                     Write::overwrite);
      if (units.group) {
        units.group->sum(drecurrent.rows(0, m));
        units.take(drecurrent.rows(0, m), back);
      }
    }
    zero_idle(d, walk.order.tokens());
    const Tensor hidden_before = tape.allocate({N, H}, backend.activation());
    backend.gather_rows(hidden, o.reverse ? walk.order.later : walk.order.earlier, hidden_before, Write::overwrite);
    if (begun > 0) {
      const int64_t begin = walk.order.step[first];
      hidden_before.rows(begin, begin + begun).copy_from(from.hidden.value.rows(0, begun));
      tape.set_gradient(from.hidden, drecurrent.rows(0, begun));
      tape.set_gradient(from.cell, dcell.rows(0, begun));
    }
    backend.weight_gradient(hidden_before, d, w.gradient, tape.gradients().next_write(w));
    tape.done(w);
    tape.arena().release(scratch);
    tape.set_gradient(gates, d);
  });
  if (!state) return y;
  *state = {};
  if (going_on == 0) return y;
  // They lie behind y on the tape, so their gradients come first. A piece whose output nobody uses gets a gradient all the same.
  const auto leave = [&](const Tensor& rows, Tensor StateGradient::*to) {
    return tape.record(rows, [=, &tape](const Tensor& d) {
      (*flows_back).*to = d;
      const auto dy = tape.gradient(y);
      if (dy.write == Write::overwrite) dy.tensor.zero();
    });
  };
  const int64_t begin = order.step[last];
  state->hidden = leave(hidden.rows(begin, std::min(begin + round_up(going_on, kStepMultiple), N)), &StateGradient::hidden);
  state->cell = leave(cell.rows(begin, begin + going_on), &StateGradient::cell);
  return y;
}

int64_t recurrent_rows(const PackedTokens& sentences) {
  std::vector<int64_t> running;  // sentences of step t
  for (int64_t b = 0; b < sentences.sentences(); ++b) {
    const auto length = static_cast<size_t>(sentences.offsets[b + 1] - sentences.offsets[b]);
    if (running.size() < length) running.resize(length);
    for (size_t t = 0; t < length; ++t) ++running[t];
  }
  int64_t rows = 0;
  for (size_t t = 1; t < running.size(); ++t) rows += round_up(running[t], kStepMultiple);
  return rows;
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
  const int64_t pairs = attention_pairs(layout);
  const Tensor y = tape.allocate({q.value.rows(), memory.value.columns()}, backend.activation());
  const Tensor weights = tape.allocate({std::max<int64_t>(pairs, 1)}, backend.parameter());
  backend.global_attention(input, layout, y, weights);
  if (v) tape.use(*v);
  if (scale) tape.use(*scale);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dq = tape.gradient(q), dmemory = tape.gradient(memory);
    CHECK(dq.write == Write::overwrite, "queries have one use");
    const Tensor dk = tape.allocate_like(k.value);  // the queries of later pieces of time may have left theirs
    Tensor dv;
    if (v) dv = scale ? tape.allocate(v->shape, backend.parameter()) : v->gradient;
    const Write dv_write = v && !scale ? tape.gradients().next_write(*v) : Write::overwrite;
    backend.global_attention_backward(input, layout, weights, dy, {}, dq.tensor, dk, dmemory.tensor, dmemory.write, dv, dv_write);
    tape.pass_gradient(k, dk);
    if (scale) {
      tape.gradients().next_write(*scale);  // both are always written together
      backend.flat().rescale_backward(dv, v->value, scale->value, v->gradient, scale->gradient, tape.gradients().next_write(*v));
    }
    if (v) tape.done(*v);
    if (scale) tape.done(*scale);
  });
}

}  // namespace starling
