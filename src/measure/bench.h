// `starling bench train`: measures in one run how close training comes to the limits of the machine.
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
  int64_t batch_sentences = 0;     // sentences per batch, in place of batch_tokens; 0: off
  std::string precision = "auto";  // bf16 | f32 | auto
  std::string device = "auto";
  int threads = 0;
  int64_t mean_length = 28;  // tokens per sentence; lengths vary around it as in news text
  bool even = false;         // all sentences have the mean length
  double seconds = 10;       // least duration of the measured steps, which are whole rounds
  uint64_t seed = 1;
};

struct BenchTrainResult {
  std::string machine;                   // backend and threads
  double f32_flops = 0, bf16_flops = 0;  // matrix products, FLOP/s; bf16: 0 if the CPU lacks it; a card has only its activation type
  double memory_rate = 0;                // bytes/s, as in backend/limits.h
  double activation_flops = 0;           // f32_flops or bf16_flops: that of the step's products
  int64_t parameters = 0, steps = 0, batches = 0;
  double target_tokens_per_second = 0, source_tokens_per_second = 0;
  double step_seconds = 0;                // mean
  double optimizer_seconds = 0;           // the optimizer's part of it; 0 on a card, which computes while the host continues
  double product_seconds = 0;             // time of the step's matrix products run by themselves, mean
  double attention_product_seconds = 0;   // attention's part of it, at the peak rate
  double product_flops = 0;               // floating-point operations of a step's products, mean
  double efficiency = 0;                  // product_seconds / step_seconds
  std::map<std::string, OpTime> profile;  // per op, over the profiled steps
  int64_t profiled_steps = 0;
  double profiled_seconds = 0;
  int64_t peak_bytes = 0;
};

// Returns batches of sentence pairs with random tokens. Lengths are log-normal around the mean (sigma 0.5), and the target's is within 20 %
// of the source's. As in training, the pairs are sorted by length and cut into `count` batches or a few more; with batch_sentences, into
// exactly `count`.
std::vector<Batch> synthetic_batches(const BenchTrainOptions& options, int64_t count);

BenchTrainResult bench_train(const BenchTrainOptions& options);

// The least seconds of an op's profile: its products at the activations' rate, or its bytes at the memory's, whichever takes longer; 0 if
// neither is counted. An op whose tensors are still in a cache can take less.
double floor_seconds(const OpTime& time, const BenchTrainResult& result);

// `starling bench limits`: the limits of a device, measured as bench_train measures them.
struct BenchLimits {
  std::string machine;
  double f32_flops = 0, bf16_flops = 0, memory_rate = 0;
};
BenchLimits bench_limits(const std::string& device, const std::string& precision, int threads);

}  // namespace starling
