// Runs a few updates of a model on the ranks of a world in a given layout, with synthetic batches, to find how long they take and how much
// memory they need. Over MPI it measures; in the simulator, on a MetaBackend, it predicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "comm/world.h"
#include "measure/bench.h"
#include "models/model.h"
#include "replica/rank_memory.h"
#include "settings/config.h"

namespace starling {

struct LayoutRun {
  BenchTrainOptions train;  // batch_tokens: as in the configuration
  StrategyOptions strategy;
  ParallelOptions parallel;
  OptimizerOptions optimizer;
  int64_t micro_tokens = 4096;  // upper limit, as train.micro-batch-tokens
  double r_drop = 0;            // as train.r-drop, whose cost is included
  int64_t updates = 8;          // measured updates, after one to warm up
};
// Returns the run of a configuration, with enough updates for a strategy that merges periodically.
LayoutRun layout_run(const Config& config);

// Bytes that a rank sends per update.
struct RankBytes {
  double boundaries = 0;  // activations and their gradients between stages, and among the shards that reassemble them
  double shared = 0;      // gradients and values of parameters that several ranks of a replica hold
  double shards = 0;      // sums within layers and in the loss, to the other shards
  double strategy = 0;    // everything else
  double total() const { return boundaries + shared + shards + strategy; }
};

struct LayoutResult {
  int ranks = 1, replicas = 1, stages = 1, shards = 1;
  int64_t parameters = 0;          // of the model
  double seconds = 0;              // of an update, mean
  double tokens = 0;               // target tokens per update, over all replicas
  double passes = 0;               // micro-batches per replica and update, mean
  double bubble = 0;               // share of the time of the passes in which a stage is idle, mean over the stages
  std::vector<RankMemory> memory;  // by rank
  std::vector<RankBytes> bytes;    // by rank
  std::string disturbance;         // what else used the processors meanwhile, or ""
  double tokens_per_second() const { return tokens / seconds; }
  // The bubble with equal stages and micro-batches: (P - 1) / (m + P - 1).
  double even_bubble() const { return (stages - 1) / (passes + stages - 1); }
};

// Returns a table for people: memory and traffic of a replica's ranks, and the bubble.
std::string layout_text(const LayoutResult& result);

// Collective: all ranks call it and get the result. Throws ConfigError for layouts that are impossible or settings that contradict each
// other.
LayoutResult time_layout(const LayoutRun& run, World& world);

}  // namespace starling
