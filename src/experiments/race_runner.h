// The class behind run_race: what a race knows, in race.cpp its stages and results, in preparation.cpp what comes before the first run,
// in training.cpp one run, in replays.cpp its virtual times.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "experiments/plan.h"
#include "experiments/race.h"
#include "experiments/race_directory.h"
#include "experiments/record.h"
#include "experiments/results.h"
#include "run/run_vocabulary.h"
#include "run/stop_signals.h"

namespace starling {

// Ends the race: a run was ended by a signal.
struct RaceInterrupted {
  int status;
};

class RaceRunner {
 public:
  RaceRunner(const RaceRecipe& recipe, const RaceProgress& progress, int jobs)
      : r_(recipe), progress_(progress), jobs_(std::max(1, jobs)), files_(real_file_system()), plan_(recipe) {}
  int run();

 private:
  using Json = nlohmann::json;
  using Times = std::map<int64_t, RaceTimes::At>;  // by update

  void prepare();
  void prepare_runs();
  void refuse_other_data(const Config& config, const TokenStore& store) const;
  void check_places() const;

  void count_planned();
  bool repeated(const RaceArm& arm) const;
  void screen();
  // The candidates of a rung, as far as the rung before tells.
  std::vector<RaceRun> candidates(const RaceArm& arm, int workers, int rung) const;
  void choose();
  std::optional<RaceChoice> chosen(const RaceArm& arm, int workers) const;
  std::vector<RaceRun> runs(const RaceArm& arm, int64_t seed) const;
  void all_workers();
  void repeat();
  void ensure_all(const std::vector<RaceRun>& all);
  void ensure(const RaceRun& run);
  void report(const RaceRun& run, const RaceRecord& record) const;

  RaceRecord kept(const RaceRun& run, const Config& config);
  void save(const RaceRun& run, const RaceRecord& record);
  // The digest of everything that a run's result depends on. Earlier versions counted the vocabulary's normalization too.
  std::string configuration_of(const RaceRun& run, const Config& config, bool with_normalization = false) const;
  void link_data(const std::string& directory) const;
  void train(const RaceRun& run, const Config& config, RaceRecord& record);
  void train_updates(const RaceRun& run, Config config, RaceRecord& record);
  std::map<std::string, double> final_scores(const Config& config) const;

  Scenario scenario(const RaceArm& arm, int workers, const std::string& network) const;
  Scenario scenario(const RaceRun& run) const { return scenario(*run.arm, run.workers, run.network); }
  static Times at_validations(const RaceTimes& all, const RaceRecord& record);
  // Of the run's validations on a network, kept in <race>/replays.
  Times times_of(const RaceRun& run, const std::string& network, const RaceRecord& record) const;

  RaceResult result(const RaceRun& run, const std::string& network, const RaceRecord& record) const;
  RaceResults results(const std::string& unfinished = "") const;
  std::string unfinished() const;
  void write(const RaceResults& results) const;

  void say(const std::string& line) const;
  std::string data_path() const { return join_path(r_.output, "data.json"); }
  std::string records_path() const { return join_path(r_.output, "records.json"); }

  const RaceRecipe& r_;
  const RaceProgress& progress_;
  const int jobs_;  // runs at a time
  std::unique_ptr<FileSystem> files_;
  RacePlan plan_;
  std::optional<StopSignals> signals_;  // once there are runs: one that comes between two of them counts too
  std::optional<RaceDirectory> directory_;
  std::optional<Vocabularies> vocabularies_;
  std::optional<TokenStore> store_;
  int64_t gradient_bytes_ = 0;
  double step_seconds_ = 0;
  mutable std::mutex replays_mutex_;                           // while a file of them is written
  mutable std::mutex say_mutex_;                               // of progress_
  std::mutex mutex_;                                           // of all that follows
  Json kept_ = Json::object();                                 // records.json: those of other recipes too
  std::map<std::string, RaceRecord> records_;                  // of this race, by name of the run
  std::map<std::pair<std::string, int>, RaceChoice> choices_;  // by arm and number of workers
  std::vector<Candidate> candidates_;
  std::vector<std::string> finalists_;
  bool ranked_ = false;                            // finalists_ are known
  int64_t number_ = 0, planned_runs_ = 0;          // runs so far, in all
  double passed_ = 0, planned_ = 0, trained_ = 0;  // target tokens of them; those trained by this process
  const double start_ = WallClock().seconds();
};

}  // namespace starling
