// The parts of a training run on one rank. Set-up (run_setup.h) creates them once; reports, validations, checkpoints and the trainer then
// use them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "comm/mesh.h"
#include "comm/world.h"
#include "data/batches.h"
#include "data/text_stream.h"
#include "progress/progress.h"
#include "replica/replica.h"
#include "run/memory_plan.h"
#include "run/post_update_actions.h"
#include "run/run_directory.h"
#include "run/run_driver.h"
#include "run/stop_signals.h"
#include "settings/batch_size_schedule.h"
#include "settings/config.h"
#include "strategies/noise_scale.h"

namespace starling {

struct RunParts {
  RunParts(const RunParts&) = delete;
  // The arguments must outlive this.
  RunParts(const Config& config, World& world, ProgressOptions options)
      : config(config), world(world), files(real_file_system()), progress(std::move(options)) {}

  const Config& config;
  World& world;
  std::unique_ptr<FileSystem> files;
  Progress progress;
  const Say say = [this](const std::string& line) { progress.message(line); };
  std::optional<RunDirectory> directory;  // on rank 0 alone
  std::unique_ptr<Backend> backend;
  std::shared_ptr<void> cards;  // keeps the ranks' cards connected (comm/nccl/)
  std::optional<Mesh> mesh;
  std::optional<Vocabularies> vocabularies;
  std::optional<TokenStore> store;
  std::optional<TextStream> text;  // in place of the store, where the text comes from a pipe: each window is an epoch
  int64_t first_window = 0;        // of this start
  std::string data_digest;
  std::optional<BatchStream> stream;
  std::unique_ptr<Model> model;
  std::optional<Replica> replica;
  std::unique_ptr<RunDriver> driver;
  std::optional<BatchSizeSchedule> growth;  // where the batch grows
  NoiseScale noise;                         // of the gradient
  OptimizerOptions optimizer;               // with scaled rates and the warm-up in updates
  int64_t batch_tokens = 0;                 // target tokens per update of all workers
  int64_t batches_per_epoch = 0;
  // Target tokens of a micro-batch, of the text; 0 until it is chosen. On resume it is that of the checkpoint, for the sum of a batch's
  // gradient to be cut into the same parts, whatever memory is free today: equal bits.
  int64_t micro_tokens = 0;
  std::vector<Batch> largest;        // of the first epoch: the batch with the most tokens, and the one with the longest sentence
  std::optional<MemoryPlan> memory;  // not in a simulated run
  Distances every{};                 // intervals of reports, validations and checkpoints
  bool signals = true;               // signals ask to stop
  std::function<bool()> stop;        // so does this, if given
  int64_t max_steps = 0;             // by step_limit() or train.max-tokens: updates; where the batch grows, batches of the stream

  Communicator& comm() const { return *world.comm; }
  Clock& clock() const { return *world.clock; }
  bool first() const { return comm().rank() == 0; }
  // Simulated ranks share one process, whose signals rank 0 handles.
  bool may_be_signalled() const { return signals && (first() || !world.simulated); }
  bool stop_asked() const { return (stop && stop()) || (may_be_signalled() && StopSignals::received() != 0); }
  bool leads() const { return mesh->leads(); }
  void wait_for_first() const { comm().barrier().wait(kNoDeadline); }
  int ranks_here() const { return world.simulated ? comm().size() : world.local_size; }  // that share this host's memory
  int64_t step() const { return replica->steps(); }
  // Of the text, or of the stream's present window.
  const TokenStore& tokens() const { return stream->store(); }
  // What limits and schedules count: updates, or, where the batch grows, batches of the stream.
  int64_t taken() const { return growth ? growth->taken() : step(); }
  Replicas replicas() const { return replica->strategy().replicas(); }
  bool mixed() const { return config.train.objective == Objective::mixed; }
  int64_t worker_batch_tokens() const { return batch_tokens / replica->strategy().workers(); }
  // The initial model: on rank 0 of a new run with train.initial-model, else null.
  const ModelDescription* initial() const { return directory && directory->initial() ? &*directory->initial() : nullptr; }
};

// Returns the update at which limits of updates, tokens or epochs end the run: the end that the learning rate's schedule counts on.
int64_t schedule_end(const RunParts& run);
// Says where a schedule ends: "at update 30 or after 10 minutes"; where the batch grows, "after 6000 target tokens".
std::string end_text(const RunParts& run, int64_t end, double minutes);

// How far a run has come, and what ends it.
struct RunStatus {
  explicit RunStatus(const RunParts& run) : run(run), start(run.clock().seconds()), by_time(ActionsByTime(run.config).asked()) {}

  const RunParts& run;
  double start;                // by the world's clock, s
  double earlier_seconds = 0;  // of the earlier starts of this run
  double preparation = 0;      // of all starts before their first update (vocabularies, tokens, the initial model's validation), s
  int64_t epoch = 1;
  bool stopped = false;  // by a signal
  bool over = false;     // by the sums of an update, or by the time of earlier starts
  bool early_stopped = false;
  bool text_ended = false;  // of a stream

  bool by_time;  // whether elapsed time matters before the limit

  // The run's total time, earlier starts included, s.
  double elapsed() const { return earlier_seconds + run.clock().seconds() - start; }
  bool time_is_up() const;
  // On rank 0, where the learning rate or an action depends on time: the elapsed share of the run's time without its preparation, 0 to 1.
  // Else 0.
  double time_gone() const;
  // Whether early stopping or train.max-epochs ends the run, as far as this rank knows by itself.
  bool limits_reached() const;
  // Says which limit ended the run; stalled: validations since the best one.
  std::string limit_reached(int64_t stalled) const;
  // Returns the fraction of the whole run that is done, 0 to 1; counted: as in RunDriver.
  double fraction(double counted) const;
};

}  // namespace starling
