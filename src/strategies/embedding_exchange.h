// Exchanging an embedding table's gradient by rows. Two forms: the rows that any rank has touched, summed as a small table of their own
// (duplicates are added up first), and `assumed sparse`, one row per token plus, if the table is the output projection too, all rows once
// more, gathered: what frameworks do that treat the gradient of a look-up as sparse whatever is added to it (Cavdar et al. 2019).
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "strategies/worker.h"

namespace starling {

// Bytes that a rank receives and sends for a table, or some rows, [V, D] among N ranks, by element size e: ring 2 (N-1)/N V D e, half of it
// as bf16 and half of it if only the owner of a part needs the sum.
double dense_exchange_bytes(int64_t V, int64_t D, int64_t element, int N);
// The gathered buffer of assumed-sparse with R rows on each of N ranks: N R (D e + 8), and the dense one V D e.
double assumed_sparse_buffer_bytes(int64_t rows_per_rank, int64_t D, int64_t element, int N);

// Rows of a table's gradient as a tensor of their own.
class SharedRows {
 public:
  // rows: of the table, ascending, each once.
  SharedRows(FlatOps& flat, const Tensor& gradient, std::vector<int32_t> rows);
  // Takes them from the gradient, or the look-ups' part alone, duplicates added up; of the rows that this rank did not touch zeros.
  void take();
  void take(const TokenGradients& tokens);
  const Tensor& values() const { return values_; }  // [rows, D]
  // The elements of values() that belong to these parts of the table.
  std::vector<Owned> parts(std::span<const Owned> of_table) const;
  // Puts them in the place of the gradient, all other rows of which become zero, or adds them to it.
  void put();
  void add();

 private:
  FlatOps* flat_;
  Tensor gradient_, values_;
  std::vector<int32_t> rows_;
};

// A gather of every token's row under way: wait(), then add_up() into the table's gradient.
class AssumedSparseExchange {
 public:
  // dense: whether all rows of the gradient go too. counts: rows of every rank.
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
