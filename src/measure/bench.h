// `starling bench train`: how far training is from the machine's own limit, measured in one run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/profiled.h"
#include "base/batch.h"
#include "models/config.h"
#include "optim/options.h"

namespace starling {

struct BenchTrainOptions {
  ModelConfig model;
  OptimizerKind optimizer = OptimizerKind::adam;
  int64_t vocabulary = 32000;      // pieces, joint
  int64_t batch_tokens = 4000;     // target tokens
  int64_t batch_sentences = 0;     // in place of batch_tokens: so many sentences a batch
  std::string precision = "auto";  // bf16 | f32 | auto
  std::string device = "auto";
  int threads = 0;
  int64_t mean_length = 28;  // tokens a sentence; lengths are spread around it as in news text
  bool even = false;         // all sentences have the mean length
  double seconds = 10;       // of measured steps, at least three steps
  uint64_t seed = 1;
};

struct BenchTrainResult {
  std::string machine;                   // backend and threads
  double f32_flops = 0, bf16_flops = 0;  // matrix-product rate, FLOP/s; bf16 0 where the CPU lacks it; of a card that of activations alone
  double memory_rate = 0;                // bytes a second, as in backend/limits.h
  int64_t parameters = 0, steps = 0, batches = 0;
  double target_tokens_per_second = 0, source_tokens_per_second = 0;
  double step_seconds = 0;                // mean
  double optimizer_seconds = 0;           // of these the optimizer's; 0 on a card, which computes while the host goes on
  double product_seconds = 0;             // this step's matrix products alone, mean
  double attention_product_seconds = 0;   // the part of them that is attention, at the peak rate
  double product_flops = 0;               // floating-point operations of a step's products, mean
  double efficiency = 0;                  // product_seconds / step_seconds
  std::map<std::string, OpTime> profile;  // per op, over the profiled steps
  int64_t profiled_steps = 0;
  double profiled_seconds = 0;
  int64_t peak_bytes = 0;
};

// Sentence pairs of random tokens; lengths are log-normal around the mean (sigma 0.5), the target within 20 % of the source; sorted by
// length and cut into `count` batches or a few more, as training does it; with batch_sentences exactly `count`.
std::vector<Batch> synthetic_batches(const BenchTrainOptions& options, int64_t count);

BenchTrainResult bench_train(const BenchTrainOptions& options);

// `starling bench limits`: of a device alone, as they are measured beside training.
struct BenchLimits {
  std::string machine;
  double f32_flops = 0, bf16_flops = 0, memory_rate = 0;
};
BenchLimits bench_limits(const std::string& device, const std::string& precision, int threads);

}  // namespace starling
