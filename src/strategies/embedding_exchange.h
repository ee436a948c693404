// Exchanges an embedding table's gradient by rows, in one of two forms. The first sums the rows that any rank has touched as a small table
// of their own, after adding up duplicates. The second, `assumed sparse`, gathers one row per token and, if the table is the output
// projection too, all rows once more: this is what frameworks do that treat the gradient of a look-up as sparse whatever is added to it
// (Cavdar et al. 2019).
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "strategies/worker.h"

namespace starling {

// The bytes that a rank receives and sends for a table, or for some rows, [V, D] among N ranks, by element size e: ring 2 (N-1)/N V D e;
// half as many with bf16, and half as many if only the owner of a part needs the sum.
double dense_exchange_bytes(int64_t V, int64_t D, int64_t element, int N);
// The bytes of the gathered buffer of assumed-sparse with R rows on each of N ranks: N R (D e + 8), where the dense one has V D e.
double assumed_sparse_buffer_bytes(int64_t rows_per_rank, int64_t D, int64_t element, int N);

// Rows of a table's gradient as a tensor of their own.
class SharedRows {
 public:
  // rows: of the table, ascending and unique.
  SharedRows(FlatOps& flat, const Tensor& gradient, std::vector<int32_t> rows);
  // Takes the rows from the gradient, or from the look-ups' part alone with duplicates added up; rows that this rank did not touch are
  // zero.
  void take();
  void take(const TokenGradients& tokens);
  const Tensor& values() const { return values_; }  // [rows, D]
  // The elements of values() that belong to these parts of the table.
  std::vector<Owned> parts(std::span<const Owned> of_table) const;
  // put() replaces the gradient by the rows and zeroes all its other rows; add() adds the rows to the gradient.
  void put();
  void add();

 private:
  FlatOps* flat_;
  Tensor gradient_, values_;
  std::vector<int32_t> rows_;
};

// A gather of every token's row in progress: wait(), then add_up() into the table's gradient.
class AssumedSparseExchange {
 public:
  // dense: whether all rows of the gradient are sent too. counts: the number of rows of every rank.
  AssumedSparseExchange(Communicator& comm, FlatOps& flat, const Tensor& gradient, const TokenGradients& tokens, bool dense,
                        const std::vector<int64_t>& counts);
  void wait() const { pending_.wait(); }
  void add_up();
  int64_t buffer_bytes() const { return all_.bytes(); }

 private:
  FlatOps* flat_;
  Tensor gradient_, all_;  // all_ [rows, front + D], each with its number in the first of `front` elements
  int64_t front_;
  Pending pending_;
};

}  // namespace starling
