// Exchanging an embedding table's gradient by rows. Two forms: `rows`, each touched row once (duplicates are added up first), and
// `assumed sparse`, one row per token plus, if the table is the output projection too, all rows once more: what frameworks do that treat
// the gradient of a look-up as sparse whatever is added to it (Cavdar et al. 2019). All ranks add the gathered rows in the order of
// ranks, so replicas stay equal.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "strategies/worker.h"

namespace starling {

// Bytes that a rank receives and sends for a table [V, D] among N ranks, by element size e:
// dense ring 2 (N-1)/N V D e, half of it as bf16 and half of it if only the owner of a part needs the sum; rows (N-1)/N R e (D + 1), R rows
// over all ranks, the index in one element more.
double dense_exchange_bytes(int64_t V, int64_t D, int64_t element, int N);
double rows_exchange_bytes(int64_t rows_of_all_ranks, int64_t D, int64_t element, int N);
// The gathered buffer of assumed-sparse with R rows on each of N ranks: N R (D e + 8), and the dense one V D e.
double assumed_sparse_buffer_bytes(int64_t rows_per_rank, int64_t D, int64_t element, int N);

// A gather of rows under way: wait(), then add_up() into the table's gradient.
class RowExchange {
 public:
  // touched: rows of gradient to send, each once. counts: rows of every rank.
  static RowExchange start_rows(Communicator& comm, FlatOps& flat, const Tensor& gradient, const std::vector<int32_t>& touched,
                                const std::vector<int64_t>& counts);
  // dense: whether all rows of the gradient go too.
  static RowExchange start_assumed_sparse(Communicator& comm, FlatOps& flat, const Tensor& gradient, const TokenGradients& tokens,
                                          bool dense, const std::vector<int64_t>& counts);
  // The look-ups' part alone, duplicates added up, on top of what the gradient holds at add_up(). touched: the tokens, each once.
  static RowExchange start_lookups(Communicator& comm, FlatOps& flat, const Tensor& gradient, const TokenGradients& tokens,
                                   const std::vector<int32_t>& touched, const std::vector<int64_t>& counts);
  void wait() const { pending_.wait(); }
  void add_up();
  int64_t buffer_bytes() const { return all_.bytes(); }

 private:
  // With memory for everybody's rows, each with its number in the first of `front` elements.
  RowExchange(Communicator& comm, FlatOps& flat, const Tensor& gradient, int64_t front, const std::vector<int64_t>& counts);
  // Where this rank's rows go, of which there must be as many as it announced.
  Tensor own_rows(size_t rows) const;

  FlatOps* flat_;
  Tensor gradient_, all_;  // all_ [rows, front + D]
  int64_t front_;
  size_t rank_;
  std::vector<int64_t> offsets_;  // of each rank's rows in all_, elements
  bool on_top_ = false;           // of what the gradient holds
  Pending pending_;
};

}  // namespace starling
