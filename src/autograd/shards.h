// Tensor parallelism: the workers of a group have the shards of one replica's layers, in each a part of the weight's columns or rows, and
// of its vocabulary some tokens each. All of them compute the same pass of the same sentences, draw the masks of the whole, and call these
// functions in the same order. What is not spread (norms, residuals, gradients of activations between layers) has the same bits on all.
#pragma once

#include "autograd/tape.h"

namespace starling {

// Which tokens of a vocabulary the rows of a table are: [first, first + rows). Without a group: all of them.
struct VocabularyShard {
  ShardGroup* group = nullptr;
  int64_t first = 0, vocabulary = 0;
};
// Of a table that is cut by rows, or whole.
VocabularyShard vocabulary_shard(const ParameterStore& store, const Parameter& table);

// The two ends of a layer that is spread over a group (Shoeybi et al. 2019): between them come layers with some of the columns, heads or
// gates, and then one with as many of the rows. x is the same on all workers, which use it with shards of weights; dx is summed.
Var copy_to_shards(const Var& x, ShardGroup* group);
// y = the sum of x over the workers, in place: no other op may need the value of x. dx = dy.
Var sum_over_shards(const Var& x, ShardGroup* group);
// whole = the columns of all workers side by side, of which those that begin at column `first` are `own`. Of any type, no gradient.
void join_columns(Backend& backend, const Tensor& own, int64_t first, const Tensor& whole, ShardGroup& group);
// sum_over_shards(x w) + b, for x [N, columns of this worker], w with as many rows and b the same on all workers, or null.
Var row_parallel_linear(const Var& x, Parameter& w, Parameter* b, ShardGroup* group);

// The tokens that are rows of this worker's table, as indices of these rows; -1 for the others.
Ints tokens_here(Tape& tape, const Ints& tokens, const VocabularyShard& shard, const Parameter& table);

// The loss of logits in shards, for projection_loss. Four numbers a row are exchanged: a maximum; the sums of exponentials, of logits and
// of the target's logit.
class ShardedLoss {
 public:
  // Writes row_loss [N, 3] as Backend::smoothed_loss does. Allocates [N, 5] on the tape.
  ShardedLoss(Tape& tape, const VocabularyShard& shard, const LossRows& rows, const Tensor& row_loss);
  // Logits [n, tokens here] of rows [begin, begin + n), which it overwrites. dlogits of the same shape gets their gradient, at the price of
  // two messages; without it nothing is sent before finish().
  void add(int64_t begin, const Tensor& logits, const Tensor& dlogits);
  void finish();

 private:
  void exchange(int64_t begin, const LogitsShard& part, const Tensor& dlogits);
  Backend& backend_;
  VocabularyShard shard_;
  LossRows rows_;
  Tensor row_loss_, top_, sums_, group_top_;
};

// Logits [R, tokens here] that a model gives as the product that they are: x w, clamped to +-bound unless that is 0.
struct OutputProduct {
  Tensor x;                   // [>= R, D]
  int64_t rows = 0;           // R
  const Packed* w = nullptr;  // until the model's weights change
  double bound = 0;
};
Tensor logits_of(Backend& backend, const OutputProduct& output);

// The k tokens of each row with the largest log-probabilities, descending, ties to the smaller token: both [R, k], k at most the
// vocabulary, of which the other workers have what is not here. The same for all. In shards 2k + 2 doubles a row and worker are exchanged.
// Waits.
void log_softmax_top_k(Backend& backend, const OutputProduct& output, const VocabularyShard& shard, int64_t k, std::vector<float>& values,
                       std::vector<int32_t>& tokens);
// Backend::sample of such logits. Three doubles a row are exchanged for each worker. Waits.
void sample(Backend& backend, const Tensor& logits, const VocabularyShard& shard, const HostDeviceArray<double>& uniform,
            const Tensor& tokens);

}  // namespace starling
