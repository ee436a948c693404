// The differentiable ops. Each records its gradient where it computes its value. N is the number of packed rows, a multiple of 64
// with idle rows at the end in training.
#pragma once

#include <memory>

#include "autograd/tape.h"

namespace starling {

// y [N, out] = dropout(activation(x [N, in] w + b)); b may be null; dropout only after relu.
Var linear(const Var& x, Parameter& w, Parameter* b, Activation activation = Activation::none, const Dropout& dropout = {});

// y [N, D] = dropout(scale * table[token] + sinusoid(position)). tokens and positions must outlive the tape.
Var embedding(Tape& tape, const std::vector<int32_t>& tokens, const std::vector<int32_t>& positions, Parameter& table, double scale,
              const Dropout& dropout);

Var layer_norm(const Var& x, Parameter& gamma, Parameter& beta);

// y = x + dropout(branch).
Var residual(const Var& x, const Var& branch, const Dropout& dropout);

// Self-attention over one [N, 3D] tensor of queries, keys and values side by side. layout must outlive the tape.
Var self_attention(const Var& qkv, const AttentionLayout& layout, const Dropout& dropout);
// Attention of q [N, D] over kv [M, 2D]: keys and values side by side.
Var cross_attention(const Var& q, const Var& kv, const AttentionLayout& layout, const Dropout& dropout);

// Sum over the target tokens of the label-smoothed cross-entropy of softmax(h [N, D] table^T), table [V, D]. Works on chunks of rows:
// the logits never exist whole. In training the gradients of h and table are computed on the way, those of the SUM. rows.targets[n] = -1
// marks an idle row. row_nll, if given, receives the negative log-likelihood of each row.
// The rows' weights multiply the smoothed sum and the gradients.
LossSums projection_loss(const Var& h, Parameter& table, const LossRows& rows, std::vector<float>* row_nll = nullptr);

}  // namespace starling
