// Virtual times of a training run: recorded from within a run, or replayed for another network. A replay executes the same strategy on the
// true sequence of batches with models without storage, so that only times and bytes come out; where timing cannot alter what is computed
// they are those of a real run.
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

// After each update of one rank, counted from the beginning of training; what is no training is left out.
struct RankTimes {
  std::vector<int64_t> ns;      // virtual
  std::vector<int64_t> tokens;  // target tokens of its shares
  std::vector<int64_t> bytes;   // sent
};

// A run as far as time is concerned.
struct RaceTimes {
  std::vector<RankTimes> ranks;
  int workers = 1;
  // Ranks go their own ways: rank 0's time counts, and what the others have done by then; after its last update, all that was done at all.
  bool asynchronous = false;
  struct At {
    int64_t ns = 0, tokens = 0, bytes = 0;  // tokens of all, bytes of all a worker
  };
  // When `step` updates are done. ConfigError-free; CHECKs that the step was recorded.
  At at(int64_t step) const;
  int64_t steps() const;  // that every computing rank has done
};

struct RaceRanks {
  int count = 1;              // more than the workers where some only serve
  bool asynchronous = false;  // they go their own ways: then times alter what is computed
};
RaceRanks ranks_for_workers(const Config& config, const ModelVocabulary& vocabulary, int workers);

// The first `steps` updates of a run of the configuration on the scenario (its ranks are set here). Not of ranks that go their own ways.
RaceTimes replay_times(const Config& config, Scenario scenario, const TokenStore& store, const Vocabularies& vocabularies, int workers,
                       int64_t steps);

// Seconds that one worker computes a step, of the first `steps` updates, without jitter, stragglers and link faults.
double step_seconds(const Config& config, Scenario scenario, const TokenStore& store, const Vocabularies& vocabularies, int64_t steps);

// Bytes of the gradient in f32.
int64_t gradient_bytes(const Config& config, const ModelVocabulary& vocabulary);

// The network's model for so many workers. With r: 2 (N-1) (message + latency + M / (N B)) = r step, solved for B; ConfigError if the
// latencies alone take longer.
NetworkModel race_network(const RaceNetwork& network, const NetworkModel& base, int workers, int64_t gradient_bytes, double step_seconds);

// Records the times of a run in the simulator. After each pause the ranks go on as far apart as they were, a moment later, so that pauses
// alter nothing. Where ranks go their own ways they cannot be stopped: what rank 0 fetches to validate takes its time, but its bytes do not
// count. With a path the record is kept there at every pause, and is read from there at first.
class TimesRecorder {
 public:
  // alone: as in RaceTimes. Bytes are then those that workers send and receive, since who serves records nothing.
  TimesRecorder(int ranks, int workers, bool asynchronous, std::string path = "");
  // The run goes on after so many updates (of rank 0, where ranks go their own ways): what is recorded of later ones is forgotten, and its
  // ranks start as far apart as they were. Before watch().
  void continue_from(int64_t updates);
  // What rank `world.comm->rank()` gives to run_training.
  TrainingWatch watch(World& world);
  // Writes the record to its path, if it has one.
  void keep() const;
  RaceTimes times() const;

 private:
  struct Rank {
    RankTimes times;
    int64_t apart_ns = 0;                    // behind the foremost rank, where the run is continued
    int64_t paused_at = 0, paused_ns = 0;    // the present pause, all so far; ns
    int64_t bytes_at = 0, paused_bytes = 0;  // sent before the present pause, in all pauses
    int64_t first_bytes = 0;                 // of the run that is continued
  };
  void resume(World& world, Rank& rank, bool synchronous);
  void note(World& world, Rank& rank, int64_t step, int64_t tokens, int64_t aside);
  void pause(World& world, Rank& rank, bool synchronous);
  void load();
  int64_t bytes(World& world) const;

  int workers_;
  bool asynchronous_;
  std::string path_;
  int64_t first_ns_ = 0;  // where the foremost rank of the run that is continued was
  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::map<int64_t, int64_t> pauses_;  // alone: by updates of rank 0, when it last paused after so many; ns
};

}  // namespace starling
