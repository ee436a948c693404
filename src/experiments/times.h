// Virtual times of a training run, recorded during the run or replayed for another network. A replay executes the same strategy on the
// actual sequence of batches, but with models without storage, so it produces only times and bytes. If timing cannot alter the results,
// they equal those of a real run.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "data/token_store.h"
#include "decode/model_directory.h"
#include "experiments/recipe.h"
#include "models/model.h"
#include "run/trainer.h"
#include "sim/simulate.h"

namespace starling {

// Cumulative figures of one rank after each update; only training counts.
struct RankTimes {
  std::vector<int64_t> ns;      // virtual
  std::vector<int64_t> tokens;  // target tokens of the rank's shares
  std::vector<int64_t> bytes;   // sent
};

// The times of a run.
struct RaceTimes {
  std::vector<RankTimes> ranks;
  int workers = 1;
  // Asynchronous ranks: rank 0's time counts, with what the others have done by then; after its last update, everything that was done.
  bool asynchronous = false;
  struct At {
    int64_t ns = 0, tokens = 0, bytes = 0;  // tokens of all ranks; bytes of all ranks per worker
  };
  // Returns the figures after `step` updates; CHECKs that the step was recorded.
  At at(int64_t step) const;
  int64_t steps() const;  // updates that every computing rank has completed
};

struct RaceRanks {
  int count = 1;              // more than the workers if some ranks only serve
  bool asynchronous = false;  // asynchronous ranks: timing alters what is computed
};
RaceRanks ranks_for_workers(const Config& config, const ModelVocabulary& vocabulary, int workers);

// Replays the first `steps` updates of a run of the configuration on the scenario, whose ranks are set here. Synchronous ranks only.
RaceTimes replay_times(const Config& config, Scenario scenario, const TokenStore& store, const Vocabularies& vocabularies, int workers,
                       int64_t steps);

// Returns the seconds that one worker needs per step, over the first `steps` updates, without jitter, stragglers and link faults.
double step_seconds(const Config& config, Scenario scenario, const TokenStore& store, const Vocabularies& vocabularies, int64_t steps);

// Returns the bytes of the gradient in f32.
int64_t gradient_bytes(const Config& config, const ModelVocabulary& vocabulary);

// Returns the network model for `workers` workers. If r is given, solves 2 (N-1) (message + latency + M / (N B)) = r step for the bandwidth
// B; throws ConfigError if the latencies alone take longer.
NetworkModel race_network(const RaceNetwork& network, const NetworkModel& base, int workers, int64_t gradient_bytes, double step_seconds);

// Records the times of a run in the simulator. After each pause, all ranks resume with the same offsets between them, slightly later, so
// that pauses alter nothing. Asynchronous ranks cannot be stopped: the time that rank 0 needs to fetch parameters for validation counts,
// but the bytes do not. If a path is given, the record is read from it initially and saved to it at every pause.
class TimesRecorder {
 public:
  // asynchronous: as in RaceTimes. Bytes are then those that workers send and receive, because servers record nothing.
  TimesRecorder(int ranks, int workers, bool asynchronous, std::string path = "");
  // Resumes the record after `updates` updates (of rank 0 if ranks are asynchronous): drops what was recorded later, and restores the
  // offsets between the ranks. Call it before watch().
  void continue_from(int64_t updates);
  // Returns what rank `world.comm->rank()` passes to run_training.
  TrainingWatch watch(World& world);
  // Writes the record to its path, if any.
  void keep() const;
  RaceTimes times() const;

 private:
  struct Rank {
    RankTimes times;
    int64_t apart_ns = 0;                    // offset behind the foremost rank, if the run is resumed
    int64_t paused_at = 0, paused_ns = 0;    // start of the current pause; total of earlier pauses
    int64_t bytes_at = 0, paused_bytes = 0;  // bytes sent before the current pause, and in all pauses
    int64_t first_bytes = 0;                 // bytes of the run before it was resumed
  };
  void resume(World& world, Rank& rank, bool synchronous);
  void note(World& world, Rank& rank, int64_t step, int64_t tokens, int64_t aside);
  void pause(World& world, Rank& rank, bool synchronous);
  void load();
  int64_t bytes(World& world) const;

  int workers_;
  bool asynchronous_;
  std::string path_;
  int64_t first_ns_ = 0;  // time of the foremost rank when the run was resumed
  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::map<int64_t, int64_t> pauses_;  // asynchronous: time of rank 0's last pause, by its number of updates; ns
};

}  // namespace starling
