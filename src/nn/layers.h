// The layers that models are made of. Each holds references to its parameters and is called like a function.
#pragma once

#include <string>
#include <utility>

#include "autograd/ops.h"

namespace starling {

// y = activation(x w + b). If the store's units are sharded, each worker has some of the columns of each of `blocks` equal blocks and reads
// an x that is the same on all workers: copy_to_shards(x).
struct ColumnLayer {
  ColumnLayer(ParameterStore& store, const std::string& name, int64_t in, int64_t out, double gain = 1, int64_t blocks = 1)
      : w(store.add(name + ".weight", {in, out}, {Initializer::glorot, gain}, {1, blocks})),
        b(store.add(name + ".bias", {out}, {Initializer::zeros}, {0, blocks})) {}
  Var operator()(const Var& x, Activation activation = Activation::none, const Dropout& dropout = {}) const {
    return linear(x, w, &b, activation, dropout);
  }
  int64_t columns() const { return w.shape[1]; }
  Parameter &w, &b;
};

// y = x w + b, for an x whose columns are this worker's.
struct RowLayer {
  RowLayer(ParameterStore& store, const std::string& name, int64_t in, int64_t out)
      : w(store.add(name + ".weight", {in, out}, {Initializer::glorot, 1}, {0})),
        b(store.add(name + ".bias", {out}, {Initializer::zeros})) {}
  Var operator()(const Var& x) const { return row_parallel_linear(x, w, &b, x.tape->parameters().shards()); }
  Parameter &w, &b;
};

// Returns x + dropout(last(h)). If weights are constant and nothing is recorded, it overwrites x with the result.
inline Var add_branch(const Var& x, const RowLayer& last, const Var& h, const Dropout& dropout) {
  ParameterStore& store = x.tape->parameters();
  if (x.tape->training() || store.training() || store.shards()) return residual(x, last(h), dropout);
  store.backend().linear(h.value, store.packed(last.w, false), last.b.value, x.value, Activation::none, Write::accumulate);
  return x;
}

// The input that all shards of a layer read.
inline Var copy_to_shards(const Var& x) { return copy_to_shards(x, x.tape->parameters().shards()); }

struct LayerNorm {
  LayerNorm(ParameterStore& store, const std::string& name, int64_t width, double variance_epsilon)
      : gamma(store.add(name + ".scale", {width}, {Initializer::ones})),
        beta(store.add(name + ".bias", {width}, {Initializer::zeros})),
        epsilon(variance_epsilon) {}
  Var operator()(const Var& x) const { return layer_norm(x, gamma, beta, epsilon); }
  Parameter &gamma, &beta;
  double epsilon;
};

// The norm and the dropout around a branch f of a residual stream: x + dropout(f(norm(x))), or norm(x + dropout(f(x))).
struct Sublayer {
  Sublayer(ParameterStore& store, const std::string& name, int64_t width, double epsilon)
      : norm(store, name + ".norm", width, epsilon), site(name + ".residual") {}
  LayerNorm norm;
  DropoutSite site;
};

// Dropout rates and row keys for a stack of layers in one forward pass.
struct Regularization {
  double residual = 0, attention = 0, feed_forward = 0;  // dropout probabilities
  RowKeys rows;
};

struct FeedForward {
  FeedForward(ParameterStore& store, const std::string& name, int64_t width, int64_t hidden, Activation of_inner)
      : inner(store, name + ".inner", width, hidden),
        outer(store, name + ".outer", hidden, width),
        site(name + ".inner"),
        activation(of_inner) {}
  // Returns the input of the outer layer.
  Var operator()(const Var& x, const Regularization& r) const {
    const int64_t first = x.tape->parameters().first_here(inner.w);
    return inner(copy_to_shards(x), activation, x.tape->dropout(r.feed_forward, site, r.rows, first));
  }
  ColumnLayer inner;
  RowLayer outer;
  DropoutSite site;
  Activation activation;
};

// Heads are columns side by side, so a shard of the columns holds some of the heads; AttentionLayout says which.
struct SelfAttention {
  // The three projections share one matrix, so each is drawn as if it were [width, width]: bound sqrt(6 / (2 D)) = gain * sqrt(6 / (4 D)).
  // reach: of relative positions, whose tables all heads share; 0: none.
  SelfAttention(ParameterStore& store, const std::string& name, int64_t width, int64_t heads, int64_t reach)
      : qkv(store, name + ".qkv", width, 3 * width, 1.4142135623730951, 3),
        relative(reach == 0
                     ? RelativeTables()
                     : RelativeTables{&store.add(name + ".key.positions", {2 * reach + 1, width / heads}, {Initializer::glorot, 1}),
                                      &store.add(name + ".value.positions", {2 * reach + 1, width / heads}, {Initializer::glorot, 1}),
                                      store.shards()}),
        out(store, name + ".out", width, width),
        site(name + ".weights") {}
  // Returns the input of the layer `out`.
  Var operator()(const Var& x, const AttentionLayout& layout, const Regularization& r) const {
    return self_attention(qkv(copy_to_shards(x)), layout, x.tape->dropout(r.attention, site, r.rows), relative);
  }
  ColumnLayer qkv;
  RelativeTables relative;
  RowLayer out;
  DropoutSite site;
};

// A Simpler Simple Recurrent Unit (Kim et al. 2019), which a decoder has in place of self-attention. No output projection follows it.
struct RecurrentUnit {
  RecurrentUnit(ParameterStore& store, const std::string& name, int64_t width)
      : candidate(store.add(name + ".candidate.weight", {width, width}, {Initializer::glorot, 1})),
        forget(store, name + ".forget", width, width) {}
  // Candidates and forget gates before their sigmoid, [N, width] each.
  std::pair<Var, Var> inputs(const Var& x) const { return {linear(x, candidate, nullptr), forget(x)}; }
  Var operator()(const Var& x, const Ints& offsets) const {
    const auto [c, f] = inputs(x);
    return ssru(c, f, offsets);
  }
  Parameter& candidate;
  ColumnLayer forget;
};

struct CrossAttention {
  CrossAttention(ParameterStore& store, const std::string& name, int64_t width)
      : q(store, name + ".query", width, width),
        kv(store, name + ".kv", width, 2 * width, 1.224744871391589, 2),
        out(store, name + ".out", width, width),
        site(name + ".weights") {}
  // Returns the input of the layer `out`. memory: already copied to the shards, once for all layers that read it.
  Var operator()(const Var& x, const Var& memory, const AttentionLayout& layout, const Regularization& r,
                 const AttentionGuide& guide = {}) const {
    return cross_attention(q(copy_to_shards(x)), kv(memory), layout, x.tape->dropout(r.attention, site, r.rows), guide);
  }
  ColumnLayer q, kv;
  RowLayer out;
  DropoutSite site;
};

}  // namespace starling
