// The differentiable ops of recurrent models, whose rows are ordered by time (time_order.h).
#pragma once

#include "autograd/time_order.h"

namespace starling {

struct LstmOptions {
  bool reverse = false;     // from the last token of each sentence to its first
  bool tanh_output = true;  // false: output = o * c
  double bound = 0;         // of the cells; 0: none
};

// What an LSTM's piece of time leaves for the next one, of the sentences that go on; empty where none does. Their gradients are of
// parameter type, and come from the one lstm that goes on from it.
struct LstmState {
  Var hidden;  // [>= R, H] activations
  Var cell;    // [R, H] parameter type, or i16 in inference
};

// y [N, H] of the gates' input x W + b [N, 4H] (order: input, forget, candidate, output), which it overwrites, and the recurrent weight w
// [H, 4H]; padding rows become zero. Of a w that is cut into shards by columns the gates are those of the units here, y is whole, and each
// step exchanges its part of y, each step backwards its gradient. The number of clipped cells is added to clipped, f64 [1] or empty. A
// whole order begins with zero state. A piece needs `state`: from there it goes on, and there it leaves its own for the piece after it (in
// reverse: before it). That state may be of another tape, as with move_to.
Var lstm(const Var& gates, Parameter& w, const TimeOrder& order, const LstmOptions& options, const Tensor& clipped = {},
         LstmState* state = nullptr);

// Rows that lstm's products with w have in a pass through these sentences, in each direction: of a step all but those of the first.
int64_t recurrent_rows(const PackedTokens& sentences);

// y [N, D] = dropout(x).
Var dropout(const Var& x, const Dropout& dropout);
// y [N, A + B]: the columns of a, then those of b.
Var concat(const Var& a, const Var& b);
// y[n] = x[index[n]], zeros where negative; inverse[m] is the n that reads row m, or negative.
Var gather_rows(const Var& x, const Ints& index, const Ints& inverse);
// y = x clamped to +-bound, whose gradient passes inside only. The number of clamped elements is added to clipped, f64 [1] or empty.
Var clamp(const Var& x, double bound, const Tensor& clipped = {});

// Backend::global_attention: q [Nq, A], k [Nk, A] and memory [Nk, D] in packed order, to y [Nq, D]. v [A] null: dot product; with a scale
// [1] the vector used is scale * v / |v| (normalised, Salimans & Kingma 2016).
Var global_attention(const Var& q, const Var& k, const Var& memory, Parameter* v, Parameter* scale, const AttentionLayout& layout);
// The vector of that attention's scores, in parameter type; empty without v.
Tensor score_vector(Tape& tape, const Parameter* v, const Parameter* scale);

}  // namespace starling
