// Keeps track of which rows of a growing table are taken, in contiguous ranges: take() gives the first free range that is large enough, and
// what is given back is joined with its free neighbours. So sentences can come and go for ever in a table that need be no larger than they
// were at once.
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
  // Takes the lowest n free rows side by side; returns the first.
  int64_t take(int64_t n);
  // Gives back rows that were taken, in one call or in several.
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
  int64_t spare = 0;  // rows that the table must have behind all taken ones, since padding rows are written there
  std::vector<int32_t> numbers;
};
// Takes contiguous rows for sources, which are written with padding rows behind them, `padded` rows in all. Sets length[number] to the
// number of tokens of each.
Places take_places(RowPlaces& rows, std::vector<int32_t>& length, const PackedTokens& source, int64_t padded);

// The rows of a table that hold prefixes, as a tree: a hypothesis is a row and those above it, so reordering a beam copies row numbers
// only. A row that no hypothesis goes through is free; the next steps reuse it.
class PrefixRows {
 public:
  // Takes the rows of a step: row r extends row parent[r] of the previous step, or begins a prefix (-1). Gives back the rows that no new
  // one goes through.
  void step(std::span<const int32_t> parent);
  const std::vector<int32_t>& rows() const { return rows_; }  // of the last step
  // Row r's prefix, itself last: index()[offsets()[r]] to index()[offsets()[r + 1]].
  const std::vector<int32_t>& index() const { return index_; }
  const std::vector<int32_t>& offsets() const { return offsets_; }
  // The most rows that were in use at once.
  int64_t end() const { return static_cast<int64_t>(parent_.size()); }

 private:
  int32_t take(int32_t parent);
  void release(int32_t row);
  std::vector<int32_t> parent_, children_;  // by row: the row above it, how many are below it
  std::vector<int32_t> free_;
  std::vector<int32_t> rows_, index_, offsets_{0};
};

// Makes `table` [rows, width] have at least that many rows and keeps the rows it had; does nothing if it is large enough.
inline void reserve_rows(Tensor& table, int64_t rows, int64_t width, DType type, Memory& memory) {
  const int64_t before = table ? table.rows() : 0;
  if (table && rows <= before) return;
  const Tensor larger({std::max(rows, 3 * before / 2), width}, type, memory);
  if (before > 0) larger.rows(0, before).copy_from(table);
  table = larger;
}

}  // namespace starling
