// Which rows of a growing table are taken, in ranges side by side: the first that is large enough is given, and what is given back is
// joined with its free neighbours. So sentences can come and go for ever in a table that need be no larger than they were at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/batch.h"
#include "tensor/tensor.h"

namespace starling {

class RowPlaces {
 public:
  // The first of n free rows, the lowest such.
  int64_t take(int64_t n);
  // Rows that were taken, together with others or not.
  void give_back(int64_t first, int64_t n);
  // No row from here on is taken.
  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> free_;  // first row, rows; below end_, none next to another or to end_
  int64_t end_ = 0;
};

// Where encoded sources lie: the number of a sentence is its first row.
struct Places {
  int64_t first = 0;  // row of the first
  int64_t spare = 0;  // rows behind all that are taken that the table must have too, since padding rows are written there
  std::vector<int32_t> numbers;
};
// Takes rows for sources, side by side, that are written with padding rows behind them, `padded` rows in all. length[number] becomes the
// tokens of each.
Places take_places(RowPlaces& rows, std::vector<int32_t>& length, const PackedTokens& source, int64_t padded);

// The rows of a table that hold prefixes, as a tree: a hypothesis is a row and those above it, so that reordering a beam copies numbers
// only. A row that no hypothesis goes through is free, and those of the next step use it.
class PrefixRows {
 public:
  // The rows of a step: row r extends row parent[r] of the step before, or begins (-1). Rows that no new one goes through are given back.
  void step(std::span<const int32_t> parent);
  const std::vector<int32_t>& rows() const { return rows_; }  // of the last step
  // Row r's prefix, itself last: index()[offsets()[r]] to index()[offsets()[r + 1]].
  const std::vector<int32_t>& index() const { return index_; }
  const std::vector<int32_t>& offsets() const { return offsets_; }
  // Rows that there have been at once, at the most.
  int64_t end() const { return static_cast<int64_t>(parent_.size()); }

 private:
  int32_t take(int32_t parent);
  void release(int32_t row);
  std::vector<int32_t> parent_, children_;  // by row: the row above it, how many are below it
  std::vector<int32_t> free_;
  std::vector<int32_t> rows_, index_, offsets_{0};
};

// A table [rows, width] that has at least so many rows, with those that `table` had; it is `table` while that is large enough.
inline void reserve_rows(Tensor& table, int64_t rows, int64_t width, DType type, Memory& memory) {
  const int64_t before = table ? table.rows() : 0;
  if (table && rows <= before) return;
  const Tensor larger({std::max(rows, 3 * before / 2), width}, type, memory);
  if (before > 0) larger.rows(0, before).copy_from(table);
  table = larger;
}

}  // namespace starling
