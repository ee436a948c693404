// What models share about rows: how many there are, the keys of their dropout masks, how inference saves memory.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "autograd/tape.h"
#include "base/batch.h"
#include "base/range.h"
#include "tensor/same_place.h"

namespace starling {

constexpr int64_t kRowMultiple = 64;  // few distinct row counts mean few distinct matrix products
// The number of rows that R hypotheses are padded to when decoding.
inline int64_t decoding_rows(const ParameterStore& store, int64_t R) { return round_up(R, store.row_multiple(R)); }

// One side of a batch as rows: tokens (-1 on padding rows), positions within the sentence, and the keys of its dropout masks.
struct Rows {
  std::vector<int32_t> tokens, positions;
  std::vector<uint32_t> sentence, position;  // as in RowKeys
};

// ids: of the sentences; without them sentences are numbered.
Rows make_rows(const PackedTokens& packed, const std::vector<int64_t>& ids, int64_t multiple);

// The number of rows that a side has in training, with padding.
inline int64_t padded_rows(const PackedTokens& packed) { return round_up(std::max<int64_t>(packed.count(), 1), kRowMultiple); }

// Empty in inference, where nothing is dropped.
inline RowKeys place_keys(Tape& tape, std::vector<uint32_t> sentence, std::vector<uint32_t> position) {
  if (!tape.training()) return {};
  return {tape.upload(std::move(sentence)), tape.upload(std::move(position))};
}

// The decoder's input: the target shifted right by one within each sentence; -1 on padding rows.
std::vector<int32_t> shifted(const PackedTokens& target, int32_t begin, size_t rows);

// One weight per row from one per sentence, zero on padding rows; empty if the batch is not weighted.
std::vector<float> row_weights(const Batch& batch, size_t rows);

// Returns numbers in another order: result[i] = numbers[order[i]], or `idle` where order[i] is negative.
template <class T>
std::vector<T> reordered(const std::vector<T>& numbers, std::span<const int32_t> order, T idle) {
  std::vector<T> result;
  for (const int32_t from : order) result.push_back(from < 0 ? idle : numbers[from]);
  return result;
}
// For each row its place in the order, or -1.
std::vector<int32_t> inverse_of(std::span<const int32_t> order, int64_t rows);

// The order of rows that puts the tokens of sentences 2i and 2i + 1, which are equal, side by side (Batch::r_drop); -1 on padding rows.
std::vector<int32_t> paired_order(const PackedTokens& packed, size_t rows);

// Calls f(), whose result has the given shape. In inference its working memory is released.
template <class F>
Var recycled(Tape& tape, const Shape& shape, F f) {
  if (tape.training()) return f();
  const Tensor kept = tape.allocate(shape, tape.backend().activation());
  const auto mark = tape.arena().mark();
  const Var y = f();
  kept.copy_from(y.value);
  tape.arena().release(mark);
  return {&tape, -1, kept};
}
// The same for a result that has the shape of x and may be computed in its place.
template <class F>
Var recycled(Tape& tape, const Var& x, F f) {
  if (tape.training()) return f();
  const auto before = tape.arena().mark();
  const Tensor kept = tape.allocate_like(x.value);
  const auto mark = tape.arena().mark();
  const Var y = f();
  const bool in_place = same_place(y.value, x.value);
  if (!in_place) kept.copy_from(y.value);
  tape.arena().release(in_place ? before : mark);
  return {&tape, -1, in_place ? x.value : kept};
}

}  // namespace starling
