// The differentiable ops of recurrent models. Their rows are ordered by time: step t holds token t of every sentence that is longer than
// t, sentences sorted by falling length. So the sentences that are still running are always a prefix of the step's rows, and an LSTM
// multiplies them in one product per step, without padding.
#pragma once

#include <vector>

#include "autograd/tape.h"
#include "base/batch.h"

namespace starling {

struct TimeOrder {
  std::vector<int32_t> step;  // [T+1] first row of each step; step[T] = tokens
  Ints row_of;                // [N] packed row -> row here; -1 on idle rows
  Ints packed;                // [N] row here -> packed row; -1 on idle rows
  Ints earlier, later;        // [N] row here -> row of the same sentence one step before or after; -1 where there is none
  int64_t steps() const { return static_cast<int64_t>(step.size()) - 1; }
  int64_t count(int64_t t) const { return step[t + 1] - step[t]; }
};
// N = tokens rounded up to a multiple; the rows beyond are idle.
TimeOrder time_order(Tape& tape, const PackedTokens& sentences, int64_t multiple);

struct LstmOptions {
  bool reverse = false;     // from the last token of each sentence to its first
  bool tanh_output = true;  // false: output = o * c
  double bound = 0;         // of the cells; 0: none
};

// y [N, H] of the gates' input x W + b [N, 4H] (order: input, forget, candidate, output), which it overwrites, and the recurrent weight
// w [H, 4H]; zero initial state; idle rows become zero. The number of clipped cells is added to clipped, f64 [1] or empty.
Var lstm(const Var& gates, Parameter& w, const TimeOrder& order, const LstmOptions& options, const Tensor& clipped = {});

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
