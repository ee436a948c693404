// Trains one run of a race and produces its final scores and its record.
#include <atomic>
#include <cmath>
#include <filesystem>

#include "base/affinity.h"
#include "decode/model_directory.h"
#include "evaluation/validation.h"
#include "experiments/race_runner.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"

namespace starling {

namespace fs = std::filesystem;

// Returns what earlier starts recorded about the run.
RaceRecord RaceRunner::kept(const RaceRun& run, const Config& config) {
  const std::lock_guard lock(mutex_);
  if (!kept_.contains(run.name())) return {};
  return record_from(kept_[run.name()], fmt::format("{}: {}", records_path(), run.name()), race_updates(config, run.workers),
                     !run.network.empty());
}

void RaceRunner::save(const RaceRun& run, const RaceRecord& record) {
  const std::lock_guard lock(mutex_);
  kept_[run.name()] = to_json(record);
  std::string text;  // one line per run
  for (const auto& [name, json] : kept_.items()) text += fmt::format("{}\n{}: {}", text.empty() ? "" : ",", Json(name).dump(), json.dump());
  files_->replace_file(records_path(), "{" + text + "\n}\n");
}

// Links the race's tokens into the run directory, where every run looks for them.
void RaceRunner::link_data(const std::string& directory) const {
  const fs::path to = join_path(directory, "data");
  if (fs::exists(to)) return;
  const fs::path half = join_path(directory, "data.half");
  fs::remove_all(half);
  fs::create_directories(half);
  for (const auto& file : fs::directory_iterator(join_path(r_.output, "data"))) {
    std::error_code error;
    fs::create_hard_link(file.path(), half / file.path().filename(), error);
    if (error) fs::copy_file(file.path(), half / file.path().filename());
  }
  fs::rename(half, to);
}

// Trains the run and completes its record. The record of an interrupted run has validations only if all updates were done.
void RaceRunner::train(const RaceRun& run, const Config& config, RaceRecord& record) {
  const bool lost = run.rung == 0 && !r_.final_metrics.empty() && !latest_checkpoint(*files_, config.train.output);
  if (!record.diverged && (record.validations.empty() || lost)) train_updates(run, config, record);
  if (std::isfinite(record.loss()) && run.rung == 0 && !r_.final_metrics.empty()) record.finals = final_scores(config);
  record.done = true;
  save(run, record);
  if (r_.keep_models) return;
  for (const char* name : {"checkpoints", "best", "data"}) fs::remove_all(fs::path(config.train.output) / name);
}

void RaceRunner::train_updates(const RaceRun& run, Config config, RaceRecord& record) {
  const std::string directory = config.train.output;
  const auto checkpoint = latest_checkpoint(*files_, directory);
  config.train.restart = !checkpoint;  // stopped before its first checkpoint, or its models were not kept
  if (!progress_.updated) say(fmt::format("training {}: {} updates", run.name(), race_updates(config, run.workers)));
  files_->make_directories(directory);
  save(run, record);
  link_data(directory);
  Scenario cluster = scenario(run);
  const auto [ranks, alone] = plan_.ranks(*run.arm, run.workers);
  cluster.ranks = ranks;
  if (jobs_ > 1 && cluster.threads == 0) cluster.threads = std::max(1, usable_cores() / jobs_);
  if (run.network.empty()) cluster.modelled_collectives = true;  // its times do not matter, and the sums are the same
  TimesRecorder recorder(ranks, run.workers, alone, run.network.empty() ? "" : join_path(directory, "times.json"));
  if (!run.network.empty()) recorder.continue_from(checkpoint ? checkpoint->step : 0);
  std::atomic<int> status{0};
  try {
    simulate(cluster, [&](World& world) {
      TrainingWatch watch = recorder.watch(world);
      if (run.network.empty()) watch = {};
      watch.silent = true;
      if (world.comm->rank() == 0 && progress_.updated)
        watch.updated = [&, steps = race_updates(config, run.workers), record_times = watch.updated](int64_t step, int64_t tokens,
                                                                                                     int64_t aside) {
          if (record_times) record_times(step, tokens, aside);
          const std::lock_guard lock(say_mutex_);
          progress_.updated(run.name(), step, steps);
        };
      const int mine = run_training(config, world, watch);
      if (world.comm->rank() == 0) status = mine;
    });
  } catch (const DivergedError&) {
    record.diverged = true;
  }
  recorder.keep();
  if (status != 0) throw RaceInterrupted{status};
  record.validations = validations_of(directory);
  if (!run.network.empty()) record.times = at_validations(recorder.times(), record);
  save(run, record);
}

std::map<std::string, double> RaceRunner::final_scores(const Config& config) const {
  const auto last = latest_checkpoint(*files_, config.train.output);
  CHECK(last, "{} has no checkpoint", config.train.output);
  const LoadedModel model = load_model(*files_, last->directory, {config.train.precision, 0, config.train.device});
  ValidConfig valid = config.valid;
  valid.metrics = r_.final_metrics;
  const World world = make_local_world();
  ValidatorRank rank;
  rank.stop = [] { return StopSignals::received() != 0; };
  const Validator::Result result = Validator(valid, model.description.vocabularies, rank).run(*model.model, *world.comm);
  if (result.stopped) throw RaceInterrupted{128 + StopSignals::received()};
  return {result.scores.begin(), result.scores.end()};
}

}  // namespace starling
