// The differentiable ops. Each records its gradient where it computes its value. N is the number of packed rows; in training it is a
// multiple of 64, with padding rows at the end.
#pragma once

#include <memory>

#include "autograd/relative.h"
#include "autograd/shards.h"

namespace starling {

// The gradients of w, and of b unless that is null, of y = x w + b.
void add_layer_gradients(Tape& tape, const Tensor& x, const Tensor& dy, Parameter& w, Parameter* b);

// y [N, out] = dropout(activation(x [N, in] w + b)); b may be null; dropout only after an activation.
Var linear(const Var& x, Parameter& w, Parameter* b, Activation activation = Activation::none, const Dropout& dropout = {});

// y [N, D] = dropout(scale * table[token] + sinusoid(position)), negative tokens as in Backend::embed. If the vocabulary is sharded, one
// sum of y gives every worker all rows.
Var embedding(Tape& tape, const Ints& tokens, const Ints& positions, Parameter& table, double scale, const Dropout& dropout,
              const VocabularyShard& shard = {});

Var layer_norm(const Var& x, Parameter& gamma, Parameter& beta, double epsilon);

// y = x + dropout(branch).
Var residual(const Var& x, const Var& branch, const Dropout& dropout);

// Self-attention over one [N, 3D] tensor of queries, keys and values side by side.
Var self_attention(const Var& qkv, const AttentionLayout& layout, const Dropout& dropout, const RelativeTables& tables = {});
// The number of pairs of a query and a key, over all sentences.
int64_t attention_pairs(const AttentionLayout& layout);
// Guided attention: what one head should attend to. The loss is the cross-entropy of its probabilities, before dropout, along the links.
struct AttentionGuide {
  int64_t head = 0;               // among those here
  Ints place;                     // of each link among all pairs of a query and a key, sentence by sentence, query-major
  HostDeviceArray<float> weight;  // of each link
  double factor = 0;              // of the loss, in gradients
  Tensor loss;                    // f64 [1]: the loss without the factor is added; empty: nothing is guided
};
// Attention of q [N, D] over kv [M, 2D]: keys and values side by side.
Var cross_attention(const Var& q, const Var& kv, const AttentionLayout& layout, const Dropout& dropout, const AttentionGuide& guide = {});

// Backend::ssru over sentences, from their candidates and forget gates [N, H], to hidden [N, H].
Var ssru(const Var& candidate, const Var& forget, const Ints& offsets);

// The loss of a pass, kept in the backend's memory as long as the pass's arena lives. Nothing waits until it is read.
struct Loss {
  static constexpr int64_t kSums = 6;
  Tensor sums;  // f64 [kSums]: smoothed, nll, correct, consistency as in LossSums, the number of clipped values, alignment
  Tensor rows;  // [N, 3 or 4] as in Backend::smoothed_loss
  int64_t tokens = 0, clippable = 0;
  Ints row_of;  // the row of each target token; empty: tokens are in the order of the rows

  Loss() = default;
  explicit Loss(Tape& tape);  // its sums are zero
  // Where clipped values are counted.
  Tensor clipped() const { return sums.slice(4, {1}); }
  // Where guided attention adds its loss.
  Tensor alignment() const { return sums.slice(5, {1}); }
  LossSums read() const { return read(sums); }
  LossSums read(const Tensor& sums) const;  // from a copy of the sums
  std::vector<float> read_nll() const;      // the negative log-likelihood of each target token
};

// Computes the sum over the target tokens of the label-smoothed cross-entropy of softmax(h [N, D] table^T + b), table [V, D], b [V] or
// null. Works on chunks of rows, so that the logits never exist as a whole. In training it also computes the gradients of h, table and b,
// those of the SUM. rows.targets[n] = -1 marks a padding row. The rows' weights multiply the smoothed sum and the gradients. If the
// vocabulary is sharded, every worker of the group has the same h and gets the same losses and gradient of h; logits stay where they are
// (ShardedLoss), and there must be no pairs of rows.
void projection_loss(const Var& h, Parameter& table, Parameter* b, const LossRows& rows, Loss& loss, const VocabularyShard& shard = {});

}  // namespace starling
