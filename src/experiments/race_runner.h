// The class behind run_race. race.cpp has its stages and results, preparation.cpp the work before the first run, training.cpp a single run,
// and replays.cpp its virtual times.
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

// Thrown to end the race when a signal has ended a run.
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
  // Returns the candidates of a rung; none if the previous rung is unfinished.
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
  // Returns the digest of everything that affects a run's result. Earlier versions included the vocabulary's normalization.
  std::string configuration_of(const RaceRun& run, const Config& config, bool with_normalization = false) const;
  void link_data(const std::string& directory) const;
  void train(const RaceRun& run, const Config& config, RaceRecord& record);
  void train_updates(const RaceRun& run, Config config, RaceRecord& record);
  std::map<std::string, double> final_scores(const Config& config) const;

  Scenario scenario(const RaceArm& arm, int workers, const std::string& network) const;
  Scenario scenario(const RaceRun& run) const { return scenario(*run.arm, run.workers, run.network); }
  static Times at_validations(const RaceTimes& all, const RaceRecord& record);
  // Returns the times of the run's validations on a network, cached in <race>/replays.
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
  std::optional<StopSignals> signals_;  // set when runs begin: a signal between two runs counts too
  std::optional<RaceDirectory> directory_;
  std::optional<Vocabularies> vocabularies_;
  std::optional<TokenStore> store_;
  int64_t gradient_bytes_ = 0;
  double step_seconds_ = 0;
  mutable std::mutex replays_mutex_;                           // guards writing replay files
  mutable std::mutex say_mutex_;                               // guards progress_
  std::mutex mutex_;                                           // guards all members below
  Json kept_ = Json::object();                                 // content of records.json, with the records of other recipes
  std::map<std::string, RaceRecord> records_;                  // of this race, by run name
  std::map<std::pair<std::string, int>, RaceChoice> choices_;  // by arm and number of workers
  std::vector<Candidate> candidates_;
  std::vector<std::string> finalists_;
  bool ranked_ = false;                            // whether finalists_ is final
  int64_t number_ = 0, planned_runs_ = 0;          // runs finished and planned
  double passed_ = 0, planned_ = 0, trained_ = 0;  // target tokens of finished and planned runs, and of those that this process trained
  const double start_ = WallClock().seconds();
};

}  // namespace starling
