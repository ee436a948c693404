// Options of compression with error feedback, and of the family that exchanges compressed gradients at every update. Presets are named sets
// of these values (strategies/presets.cpp); equations are in docs/explanation/strategies.md.
#pragma once

#include <cstdint>

#include "backend/compression.h"
#include "config/words.h"

namespace starling {

enum class Compressor : uint8_t { none, top_k, ternary, four_bit };
constexpr auto words(Compressor) { return std::array{"none", "top-k", "ternary", "4-bit"}; }
enum class SelectFrom : uint8_t { chunk, tensor };
constexpr auto words(SelectFrom) { return std::array{"chunk", "tensor"}; }
enum class SentValues : uint8_t { f32, bf16, two_bit };
constexpr auto words(SentValues) { return std::array{"f32", "bf16", "2-bit"}; }
constexpr auto words(LocalPart) { return std::array{"none", "sum", "partial", "error"}; }

struct CompressionOptions {
  Compressor compressor = Compressor::none;
  double keep = 0.01;  // density, top-k
  SelectFrom select = SelectFrom::chunk;
  SentValues values = SentValues::bf16;
  double residual_decay = 1;
  int64_t dense_below = 4096;      // elements of a tensor
  int64_t keep_warmup = 0;         // updates
  double momentum_correction = 0;  // 0: off
};

template <class Visitor>
void visit(Visitor& v, CompressionOptions& c) {
  const char* compressor = "strategy.compression.compressor";
  const auto any = {Compressor::top_k, Compressor::ternary, Compressor::four_bit}, top_k = {Compressor::top_k};
  v.choice(
      "compressor", c.compressor,
      "what is sent of gradients or displacements, the rest being kept for later: top-k = the largest elements; ternary = -level, 0 or "
      "level; 4-bit = 0 or a sign and one of seven powers of two");
  v.field("keep", c.keep, "share of the elements that is sent", 0.00025, 1.0).needs(compressor, top_k);
  v.choice("select", c.select, "the largest of each chunk of 4096 elements, or of each tensor").needs(compressor, top_k);
  v.choice(
       "values", c.values,
       "number format of what is sent; rounding errors are kept for later; 2-bit = a sign and two levels per chunk (select chunk, keep up "
       "to a few %)")
      .needs(compressor, top_k);
  v.field("residual-decay", c.residual_decay,
          "factor on the residual when the next gradient or displacement is added to it; 1 = nothing is lost; 0 = all of it is", 0.0, 1.0)
      .needs(compressor, any);
  v.field("dense-below", c.dense_below, "tensors with fewer elements are sent whole", 0, 1000000000).needs(compressor, any);
  v.field("keep-warmup", c.keep_warmup,
          "updates W (after synchronous-steps; of all, merged or not) until the dropped share 1 - keep is reached: (1 - keep)^(W / (t + "
          "1)) at update t before",
          0, 1000000000)
      .needs(compressor, top_k);
  v.field("momentum-correction", c.momentum_correction,
          "momentum m of what is compressed, stopped where it was sent (Deep Gradient Compression); use with train.optimizer sgd; 0 = off",
          0.0, 0.9999)
      .needs(compressor, any);
}

struct SparseOptions {
  LocalPart local_gradients = LocalPart::none;
  double local_scale = 0;        // 0: sqrt(workers); -1: workers
  int64_t average_interval = 0;  // updates; 0: never
  bool residual_reset = false;
};

template <class Visitor>
void visit(Visitor& v, SparseOptions& c) {
  const char* local = "strategy.sparse.local-gradients";
  const auto any = {LocalPart::sum, LocalPart::partial, LocalPart::error};
  v.choice("local-gradients", c.local_gradients,
           "what a worker adds of its own to the sum of what was sent: none = nothing; sum = its gradient; partial = its gradient where it "
           "sent nothing, and the unsent rest of it elsewhere; error = everything that it has not sent yet");
  v.field("local-scale", c.local_scale,
          "factor on the local part, with partial where nothing was sent; 0 = the root of the number of workers, -1 = their number", -1.0,
          1e6)
      .needs(local, any);
  v.field("average-interval", c.average_interval, "updates between two averagings of the workers' parameters; 0 = never", 0, 1000000000)
      .needs(local, any);
  v.field("residual-reset", c.residual_reset, "averagings of parameters discard what was not sent")
      .needs("strategy.sparse.average-interval");
}

}  // namespace starling
