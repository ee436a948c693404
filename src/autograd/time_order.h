// Rows in time order, and pieces of time. Step t holds token t of every sentence longer than t, with the sentences sorted by decreasing
// length. The sentences that are still running are therefore always a prefix of the step's rows, and an LSTM multiplies them in one product
// per step, without padding. A piece of some steps is an order of its own: a layer begins a piece when the layer below has finished it.
#pragma once

#include <type_traits>
#include <vector>

#include "autograd/tape.h"
#include "base/batch.h"

namespace starling {

struct TimeOrder {
  std::vector<int32_t> step;  // [T+1] first row of each step; step[T] = tokens
  Ints row_of;                // [N of the whole] packed row -> row here; -1 on padding rows, and on those of other pieces
  Ints packed;                // [N] row here -> packed row; -1 on padding rows
  Ints earlier, later;        // [N] row here -> row of the same sentence one step before or after; -1 where there is none here
  // For a piece: its first row in the whole order, and the number of sentences in the steps just before and just after it.
  int64_t first_row = 0, before = 0, after = 0;

  int64_t steps() const { return static_cast<int64_t>(step.size()) - 1; }
  int64_t tokens() const { return step.back(); }
  int64_t rows() const { return static_cast<int64_t>(packed.size()); }
  // The number of sentences in step t, which may also be -1 or T.
  int64_t count(int64_t t) const { return t < 0 ? before : t >= steps() ? after : step[t + 1] - step[t]; }
};
// N = tokens rounded up to a multiple; the rows beyond are padding.
TimeOrder time_order(Tape& tape, const PackedTokens& sentences, int64_t multiple);

// Cuts the steps into `pieces` pieces with about equal numbers of rows, or into one piece per step if there are fewer steps. N of a piece
// is its tokens rounded up to a multiple.
std::vector<TimeOrder> time_pieces(Tape& tape, const TimeOrder& whole, int64_t pieces, int64_t multiple);
// The number of tokens in each of these pieces.
std::vector<int64_t> piece_tokens(const PackedTokens& sentences, int64_t pieces);

// The piece's part of an array that has one number for each row of the whole order; `idle` on padding rows.
template <class T>
HostDeviceArray<T> piece_numbers(Tape& tape, const TimeOrder& piece, const HostDeviceArray<T>& whole, std::type_identity_t<T> idle) {
  const HostDeviceArray<T> part = whole.part(piece.first_row, piece.tokens());
  std::vector<T> numbers(part.begin(), part.end());
  numbers.resize(static_cast<size_t>(piece.rows()), idle);
  return tape.upload(std::move(numbers));
}
// The same for row keys, so that a piece's dropout masks are those of the whole. Empty in inference.
RowKeys piece_keys(Tape& tape, const TimeOrder& piece, const RowKeys& whole);

// y [N of the piece, D]: the piece's rows of x, which has the rows of the whole order; padding rows are zero.
Var take_piece(const Var& x, const TimeOrder& piece);
// y [N of the whole, D]: the rows of all pieces, parts[i] those of pieces[i]; padding rows are zero.
Var join_pieces(const std::vector<Var>& parts, const std::vector<TimeOrder>& pieces, const TimeOrder& whole);

// Moves x to another tape, whose backward pass must run before that of x's own tape and leaves the gradient there. So a pass can have one
// tape per piece. The tapes may share an arena or have one each.
Var move_to(Tape& tape, const Var& x);

}  // namespace starling
