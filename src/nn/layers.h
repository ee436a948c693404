// The layers models are made of: each owns references to its parameters and is called like a function.
#pragma once

#include <string>

#include "autograd/ops.h"

namespace starling {

struct LinearLayer {
  LinearLayer(ParameterStore& store, const std::string& name, int64_t in, int64_t out, double gain = 1)
      : w(store.add(name + ".weight", {in, out}, {Initializer::glorot, gain})), b(store.add(name + ".bias", {out}, {Initializer::zeros})) {}
  Var operator()(const Var& x, Activation activation = Activation::none, const Dropout& dropout = {}) const {
    return linear(x, w, &b, activation, dropout);
  }
  Parameter &w, &b;
};

struct LayerNorm {
  LayerNorm(ParameterStore& store, const std::string& name, int64_t width)
      : gamma(store.add(name + ".scale", {width}, {Initializer::ones})), beta(store.add(name + ".bias", {width}, {Initializer::zeros})) {}
  Var operator()(const Var& x) const { return layer_norm(x, gamma, beta); }
  Parameter &gamma, &beta;
};

// What stands around a branch of a residual stream: x + dropout(f(norm(x))), or norm(x + dropout(f(x))).
struct Sublayer {
  Sublayer(ParameterStore& store, const std::string& name, int64_t width) : norm(store, name + ".norm", width), site(name + ".residual") {}
  LayerNorm norm;
  DropoutSite site;
};

// Rates and row keys of a stack of layers in one forward pass.
struct Regularization {
  double residual = 0, attention = 0, feed_forward = 0;  // dropout probabilities
  RowKeys rows;
};

struct FeedForward {
  FeedForward(ParameterStore& store, const std::string& name, int64_t width, int64_t hidden)
      : inner(store, name + ".inner", width, hidden), outer(store, name + ".outer", hidden, width), site(name + ".inner") {}
  Var operator()(const Var& x, const Regularization& r) const {
    return outer(inner(x, Activation::relu, x.tape->dropout(r.feed_forward, site, r.rows)));
  }
  LinearLayer inner, outer;
  DropoutSite site;
};

struct SelfAttention {
  // The three projections share one matrix, so each is drawn as if it were [width, width]: bound sqrt(6 / (2 D)) = gain * sqrt(6 / (4 D)).
  SelfAttention(ParameterStore& store, const std::string& name, int64_t width)
      : qkv(store, name + ".qkv", width, 3 * width, 1.4142135623730951), out(store, name + ".out", width, width), site(name + ".weights") {}
  Var operator()(const Var& x, const AttentionLayout& layout, const Regularization& r) const {
    return out(self_attention(qkv(x), layout, x.tape->dropout(r.attention, site, r.rows)));
  }
  LinearLayer qkv, out;
  DropoutSite site;
};

struct CrossAttention {
  CrossAttention(ParameterStore& store, const std::string& name, int64_t width)
      : q(store, name + ".query", width, width),
        kv(store, name + ".kv", width, 2 * width, 1.224744871391589),
        out(store, name + ".out", width, width),
        site(name + ".weights") {}
  Var operator()(const Var& x, const Var& memory, const AttentionLayout& layout, const Regularization& r) const {
    return out(cross_attention(q(x), kv(memory), layout, x.tape->dropout(r.attention, site, r.rows)));
  }
  LinearLayer q, kv, out;
  DropoutSite site;
};

}  // namespace starling
