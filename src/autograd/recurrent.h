// The differentiable ops of recurrent models, whose rows are ordered by time (time_order.h).
#pragma once

#include "autograd/time_order.h"

namespace starling {

struct LstmOptions {
  bool reverse = false;     // from the last token of each sentence to its first
  bool tanh_output = true;  // false: output = o * c
  double bound = 0;         // of the cells; 0: none
};

// The state that an LSTM leaves after a piece of time for the sentences that continue; empty if none does. Its gradients have parameter
// type and come from the one lstm() call that continues from it.
struct LstmState {
  Var hidden;  // [>= R, H] activations
  Var cell;    // [R, H] parameter type, or i16 in inference
};

// Computes y [N, H] from the gates' input x W + b [N, 4H] (order: input, forget, candidate, output), which it overwrites, and the recurrent
// weight w [H, 4H]; padding rows become zero. If w is cut into shards by columns, the gates are those of this worker's units and y is
// whole: each step exchanges its part of y, and each backward step its gradient. The number of clipped cells is added to clipped, f64 [1]
// or empty. A whole order begins with zero state. A piece needs `state`: it continues from there and leaves its own state there for the
// next piece (in reverse: the previous one). That state may be on another tape, as with move_to.
Var lstm(const Var& gates, Parameter& w, const TimeOrder& order, const LstmOptions& options, const Tensor& clipped = {},
         LstmState* state = nullptr);

// The rows that lstm's products with w have in one pass through these sentences, in each direction: those of every step but the first.
int64_t recurrent_rows(const PackedTokens& sentences);

// y [N, D] = dropout(x).
Var dropout(const Var& x, const Dropout& dropout);
// y [N, A + B]: the columns of a, then those of b.
Var concat(const Var& a, const Var& b);
// y[n] = x[index[n]], zeros where negative; inverse[m] is the n that reads row m, or negative.
Var gather_rows(const Var& x, const Ints& index, const Ints& inverse);
// y = x clamped to +-bound; the gradient passes only inside. The number of clamped elements is added to clipped, f64 [1] or empty.
Var clamp(const Var& x, double bound, const Tensor& clipped = {});

// Backend::global_attention: q [Nq, A], k [Nk, A] and memory [Nk, D] in packed order, to y [Nq, D]. v [A] null: dot product; with a scale
// [1] the vector used is scale * v / |v| (normalised, Salimans & Kingma 2016).
Var global_attention(const Var& q, const Var& k, const Var& memory, Parameter* v, Parameter* scale, const AttentionLayout& layout);
// The vector of that attention's scores, in parameter type; empty without v.
Tensor score_vector(Tape& tape, const Parameter* v, const Parameter* scale);

}  // namespace starling
