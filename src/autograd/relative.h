// Relative positions (Shaw et al. 2018): a key that comes after a query by some places, or before it, has a row of one table added to it,
// and its value a row of another. Both are products with the tables around Backend::attention, which knows bins only.
#pragma once

#include "autograd/tape.h"

namespace starling {

// The tables of one layer, [2 reach + 1, columns of a head]; null: no relative positions. All heads share them, so the workers that heads
// are spread over have copies.
struct RelativeTables {
  Parameter *keys = nullptr, *values = nullptr;
  ShardGroup* shards = nullptr;
};

// The relative positions of one self-attention, around whose op they are: start(), Backend::attention or attend_cached, finish().
class RelativeAttention {
 public:
  RelativeAttention(Tape& tape, const RelativeTables& tables, int64_t heads) : tape_(tape), tables_(tables), heads_(heads) {}
  // Returns the bins of queries in the first D columns of q [N, >= D], for the op; its reach is 0 without tables.
  RelativeBins start(const Tensor& q, int64_t D);
  // y [N, D] += what relative positions add to the values. Announces the use of the tables.
  void finish(const Tensor& y);
  // The same in the backward pass: the bins for the op; then dq += what comes through the scores, in the first D columns, and the gradients
  // of the tables, summed over the workers.
  RelativeBins start_backward(const Tensor& dy);
  void finish_backward(const Tensor& dq);

 private:
  // x [N, heads * columns] with a row for each head.
  Tensor by_head(const Tensor& x) const { return x.view({x.rows() * heads_, x.columns() / heads_}); }
  // The gradient of a table: a^T c, summed over the workers.
  void add_gradient(Parameter& table, const Tensor& a, const Tensor& c);

  Tape& tape_;
  RelativeTables tables_;
  int64_t heads_;
  Tensor queries_, dy_;
  RelativeBins bins_;
};

}  // namespace starling
