// What will take a rank's memory, by kind, counted before the first update: the tensors that are there, and passes over the largest batches
// with a backend that computes nothing. The size of micro-batches follows from it, since a process that outgrows its cgroup is killed
// without a message, and one that outgrows its card fails in the middle of an update.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/batch.h"
#include "base/memory.h"
#include "comm/mesh.h"
#include "replica/replica.h"
#include "settings/config.h"

namespace starling {

struct RunParts;

struct MemoryPlan {
  struct Kind {
    std::string name;
    double bytes = 0;
    double taken = 0;     // of these, what this process has taken already
    bool exists = false;  // reserved, though it may not be taken yet
  };
  std::vector<Kind> kinds;
  double resident = 0;       // bytes that this process has taken, of all kinds and of none
  int64_t micro_tokens = 0;  // target tokens of a micro-batch, of the text
  UsableMemory usable;       // what may still be taken
  int sharing = 1;           // ranks that share it
  std::string warning;       // if it may not suffice

  double bytes_of(std::string_view kind) const;
  double to_come() const;
  double peak() const { return resident + to_come(); }
  // Whether a tenth of what is usable is left, for what is not counted, as searches of validations. A limit on addresses is each process's
  // own, and what exists counts against it already.
  bool fits() const;
  // "program and text 61, parameters 240, ... MiB; together ...".
  std::string text() const;
};

struct PlannedRank {
  const Config& config;
  Replica& replica;
  const Mesh& mesh;
  std::vector<Batch> shares;  // the replica's, of the largest batches
  int sharing = 1;            // ranks that share the memory
  bool snapshots = false;     // whether the guard keeps them
};
// Plans a rank's memory, and how many target tokens a micro-batch has: `asked` of them, or if that is 0, what is fastest or what memory
// permits, but at least 256. Throws ConfigError if a card cannot hold that, since nothing else can free memory there. Local to the rank.
MemoryPlan plan_memory(const PlannedRank& rank, const UsableMemory& usable, int64_t asked);

// Returns the bytes of activations of a rank of a replica that computes this share of a batch in micro-batches of so many target tokens of
// the text at most. rank: among the ranks of the replica.
double activation_bytes(const Config& config, const ModelVocabulary& vocabulary, const Backend& backend, int rank, const Batch& share,
                        int64_t micro_tokens);

// Chooses the size of micro-batches, the same on all ranks, if the run was not resumed with one, and reports what memory may not suffice
// for. Simulated ranks share one process: the first plans for all. snapshots: whether the guard keeps them. Collective.
void plan_micro_batches(RunParts& run, bool snapshots);

// Passes the largest micro-batch once, before the first update, and drops its gradients: what does not fit fails now and not in the night.
// Where memory runs out, micro-batches are halved, on all ranks alike; throws ConfigError on all of them if they cannot get smaller. Only
// in real runs whose model is not divided. Collective.
void pass_largest_first(RunParts& run);

}  // namespace starling
