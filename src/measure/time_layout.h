// A few updates of a model on the ranks of a world, arranged in one way: how long they take and what they need, with synthetic batches.
// Over MPI it measures; in the simulator, on an idle backend, it predicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "comm/world.h"
#include "measure/bench.h"
#include "models/model.h"
#include "settings/config.h"

namespace starling {

struct LayoutRun {
  BenchTrainOptions train;  // batch_tokens: as in the configuration
  StrategyOptions strategy;
  ParallelOptions parallel;
  OptimizerOptions optimizer;
  int64_t micro_tokens = 4096;  // at most, as in train.micro-batch-tokens
  double r_drop = 0;            // as in train.r-drop: at its cost
  int64_t updates = 8;          // measured, after one to warm up
};
// What a configuration trains; updates: enough for a strategy that merges from time to time.
LayoutRun layout_run(const Config& config);

// What a rank keeps, bytes.
struct RankMemory {
  double parameters = 0, gradients = 0;
  double optimizer = 0;    // moments, and the moving average of the parameters
  double packed = 0;       // matrices in the order of their products, and transposed
  double copies = 0;       // of parameters that other ranks of the replica own, and their gradients
  double strategy = 0;     // residuals, merged models
  double activations = 0;  // of the passes under way, with their gradients
  double total() const { return parameters + gradients + optimizer + packed + copies + strategy + activations; }
};
// What it sends in an update, bytes.
struct RankBytes {
  double boundaries = 0;  // activations and their gradients from stage to stage, and among the shards that put them together
  double shared = 0;      // gradients and values of parameters that several ranks of a replica have
  double shards = 0;      // sums within layers and the loss, to the other shards
  double strategy = 0;    // all else
  double total() const { return boundaries + shared + shards + strategy; }
};

struct LayoutResult {
  int ranks = 1, replicas = 1, stages = 1, shards = 1;
  int64_t parameters = 0;          // of the model
  double seconds = 0;              // of an update, mean
  double tokens = 0;               // target tokens of an update, all replicas
  double passes = 0;               // micro-batches of a replica in an update, mean
  double bubble = 0;               // share of the time of the passes that a stage does not compute, mean over the stages
  std::vector<RankMemory> memory;  // by rank
  std::vector<RankBytes> bytes;    // by rank
  double tokens_per_second() const { return tokens / seconds; }
  // Of equal stages and micro-batches: (P - 1) / (m + P - 1).
  double even_bubble() const { return (stages - 1) / (passes + stages - 1); }
};

// For people: what the ranks of a replica keep and send, and the bubble.
std::string layout_text(const LayoutResult& result);

// A forward and a backward pass of the batch as it is, where nothing is computed: a replica passes one token in its place. Returns the
// bytes of activations.
double pass_of_whole_batch(Model& model, const Batch& batch);

// All ranks call it, and get the result. ConfigError for what cannot be arranged or meant together.
LayoutResult time_layout(const LayoutRun& run, World& world);

}  // namespace starling
