// Tensor parallelism: the workers of a group hold the shards of one replica's layers, some columns or rows of each weight and some tokens
// of the vocabulary. They all compute the same pass over the same sentences, draw the dropout masks of the whole model, and call these
// functions in the same order. What is not sharded (norms, residuals, gradients of activations between layers) has the same bits on all of
// them.
#pragma once

#include "autograd/tape.h"

namespace starling {

// Which tokens of a vocabulary the rows of a table stand for: [first, first + rows). Without a group: all of them.
struct VocabularyShard {
  ShardGroup* group = nullptr;
  int64_t first = 0, vocabulary = 0;
};
// The shard that a table holds, which is cut by rows or whole.
VocabularyShard vocabulary_shard(const ParameterStore& store, const Parameter& table);

// copy_to_shards and sum_over_shards are the two ends of a layer that is spread over a group (Shoeybi et al. 2019). Between them come
// layers with some of the columns, heads or gates, and then one with the matching rows. x is the same on all workers, which multiply it by
// their shards of weights; dx is summed over them.
Var copy_to_shards(const Var& x, ShardGroup* group);
// y = the sum of x over the workers, in place: no other op may need the value of x. dx = dy.
Var sum_over_shards(const Var& x, ShardGroup* group);
// Fills `whole` with the columns of all workers side by side; `own` are this worker's, from column `first` on. For any type; no gradient.
void join_columns(Backend& backend, const Tensor& own, int64_t first, const Tensor& whole, ShardGroup& group);
// sum_over_shards(x w) + b, for x [N, columns of this worker] and w with as many rows; b is the same on all workers, or null.
Var row_parallel_linear(const Var& x, Parameter& w, Parameter* b, ShardGroup* group);

// Maps tokens to the rows of this worker's table; kPaddingRow for tokens of other workers.
Ints tokens_here(Tape& tape, const Ints& tokens, const VocabularyShard& shard, const Parameter& table);

// Computes the loss of sharded logits, for projection_loss. Four numbers are exchanged per row: the maximum, and the sums of the
// exponentials, of the logits and of the target's logit.
class ShardedLoss {
 public:
  // Writes row_loss [N, 3] as Backend::smoothed_loss does. Allocates [N, 5] on the tape.
  ShardedLoss(Tape& tape, const VocabularyShard& shard, const LossRows& rows, const Tensor& row_loss);
  // Adds the logits [n, local tokens] of rows [begin, begin + n), which it overwrites. dlogits, of the same shape, gets their gradient at
  // the price of two messages; without it nothing is sent before finish().
  void add(int64_t begin, const Tensor& logits, const Tensor& dlogits);
  void finish();

 private:
  void exchange(int64_t begin, const LogitsShard& part, const Tensor& dlogits);
  Backend& backend_;
  VocabularyShard shard_;
  LossRows rows_;
  Tensor row_loss_, top_, sums_, group_top_;
};

// Logits [R, local tokens] of a model, as a product still to be computed: x w + b, clamped to +-bound unless that is 0.
struct OutputProduct {
  Tensor x;                   // [>= R, D]
  int64_t rows = 0;           // R
  const Packed* w = nullptr;  // valid until the model's weights change
  double bound = 0;
  Tensor b{};  // [local tokens], or empty
};
Tensor logits_of(Backend& backend, const OutputProduct& output);

// Finds the k tokens of each row with the largest log-probabilities, descending, ties to the smaller token: both outputs are [R, k]. k may
// be up to the size of the whole vocabulary, over all workers; all workers get the same result. In shards, 2k + 2 doubles are exchanged per
// row and worker. Waits.
void log_softmax_top_k(Backend& backend, const OutputProduct& output, const VocabularyShard& shard, int64_t k, std::vector<float>& values,
                       std::vector<int32_t>& tokens);
// Backend::sample for logits that may be sharded. Three doubles are exchanged per row and worker. Waits.
void sample(Backend& backend, const Tensor& logits, const VocabularyShard& shard, const HostDeviceArray<double>& uniform,
            const Tensor& tokens);

}  // namespace starling
