#include "race/race.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/affinity.h"
#include "base/checkpoint.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/made_paths.h"
#include "base/outputs.h"
#include "base/sha256.h"
#include "base/text_files.h"
#include "data/corpus.h"
#include "decode/model_directory.h"
#include "race/picture.h"
#include "race/record.h"
#include "race/results.h"
#include "race/times.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/run_vocabulary.h"
#include "train/stop_signals.h"
#include "train/trainer.h"
#include "train/validation.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Ends the race: a run was ended by a signal.
struct Interrupted {
  int status;
};

std::string scenario_text(Scenario scenario) {
  const std::vector<ConfigSection> sections{config_section("cluster", "", scenario)};
  return write_config(sections);
}

class Race {
 public:
  Race(const RaceRecipe& recipe, const RaceProgress& progress, int jobs)
      : r_(recipe), progress_(progress), jobs_(std::max(1, jobs)), files_(real_file_system()) {}

  int run() {
    prepare();
    if (progress_.prepared) progress_.prepared();
    try {
      screen();
      all_workers();
      repeat();
    } catch (const Interrupted& i) {
      write(results(unfinished()));
      say(fmt::format("interrupted; the same command continues. What there is so far is in {}: table.md, race.svg", r_.output));
      return i.status;
    }
    const RaceResults final = results();
    write(final);
    for (const std::string& line : final.recommendations()) say(line);
    say(fmt::format("everything is in {}: table.md, race.svg, results.csv, curves.csv", r_.output));
    return 0;
  }

 private:
  const RaceRecipe& r_;
  const RaceProgress& progress_;
  const int jobs_;  // runs at a time
  std::unique_ptr<FileSystem> files_;
  StopSignals signals_;  // one that comes between two runs counts too
  std::unique_ptr<FileLock> lock_;
  std::optional<Vocabularies> vocabularies_;
  std::optional<TokenStore> store_;
  int64_t gradient_bytes_ = 0;
  double step_seconds_ = 0;
  std::map<std::pair<std::string, int>, RaceRanks> ranks_;  // by arm and workers
  mutable std::mutex replays_mutex_;                        // while a file of them is written
  mutable std::mutex say_mutex_;                            // of progress_
  std::mutex mutex_;                                        // of all that follows
  Json kept_ = Json::object();                              // records.json: those of other recipes too
  std::map<std::string, RaceRecord> records_;               // of this race, by name of the run
  std::map<std::string, double> rates_;                     // chosen, by arm
  std::vector<Candidate> candidates_;
  std::vector<std::string> finalists_;
  bool ranked_ = false;                            // finalists_ are known
  int64_t number_ = 0, planned_runs_ = 0;          // runs so far, in all
  double passed_ = 0, planned_ = 0, trained_ = 0;  // target tokens of them; those trained by this process
  const double start_ = WallClock().seconds();

  void say(const std::string& line) const {
    const std::lock_guard lock(say_mutex_);
    progress_.say(line);
  }

  // ---- preparation ----

  void prepare() {
    refuse_own_inputs();
    MadePaths made(*files_);  // a race that is refused leaves nothing behind
    for (const char* name : {"lock", "runs", "replays", "vocab.spm", "source.spm", "target.spm", "data", "data.json"})
      made.note(join_path(r_.output, name));
    const Config config = race_config(r_, {&r_.baseline, 1, r_.seeds.front(), r_.baseline.rates.front(), "", false});
    files_->make_directories(r_.output);
    lock_ = FileLock::try_acquire(join_path(r_.output, "lock"));
    if (!lock_) made.keep();  // it is the other's
    if (!lock_)
      throw ConfigError(fmt::format("{}: another race uses this directory; wait for it, or choose another race.output", r_.output));
    for (const char* name : {"runs", "replays"}) files_->make_directories(join_path(r_.output, name));
    if (fs::exists(records_path())) kept_ = parse_json_object(read_text_file(records_path()), records_path());
    vocabularies_.emplace(open_vocabularies(config, *files_, progress_.say));
    for (const RaceArm* arm : arms())
      for (const int64_t workers : arm->workers)
        ranks_[{arm->name, static_cast<int>(workers)}] =
            ranks_for_workers(race_config(r_, {arm, static_cast<int>(workers), r_.seeds.front(), arm->rates.front(), "", false}),
                              vocabularies_->sizes(), static_cast<int>(workers));
    store_.emplace(open_run_tokens(*files_, r_.output, config.data, *vocabularies_, {}, fs::exists(data_path()),
                                   [&](const TokenStore& store) { refuse_other_data(config, store); }));
    if (ranks(r_.baseline, 1).count > 1)
      throw ConfigError(
          fmt::format("{}: one worker, by which all arms are measured, has a server with the strategy that all arms share; set "
                      "strategy.name and strategy.servers in arms",
                      r_.file));
    gradient_bytes_ = gradient_bytes(config, vocabularies_->sizes());
    step_seconds_ = step_seconds(config, r_.cluster, *store_, vocabularies_->sizes(), std::min<int64_t>(200, config.train.max_steps));
    say(fmt::format("one worker: {:.2f} M parameters, {} target tokens an update, {:.1f} virtual ms of computing; {} updates",
                    static_cast<double>(gradient_bytes_) / 4e6, config.train.batch_tokens, 1e3 * step_seconds_, config.train.max_steps));
    check_places();
    plan();
    made.keep();
  }

  // None of the files that a race writes may be one that it reads.
  void refuse_own_inputs() const {
    const Config config = race_config(r_, {&r_.baseline, 1, r_.seeds.front(), r_.baseline.rates.front(), "", false});
    std::vector<NamedPath> inputs{{"the recipe", r_.file}, {"valid.source", config.valid.source}, {"valid.target", config.valid.target}};
    for (const CorpusFiles& c : config.data.train)
      inputs.insert(inputs.end(), {{"data.source", c.source}, {"data.target", c.target}, {"data.tsv", c.tsv}});
    for (const char* name : {"records.json", "data.json", "cluster.yml", "results.csv", "curves.csv", "table.md", "race.svg"})
      refuse_own_input({"race.output's", join_path(r_.output, name)}, inputs);
  }

  // Runs of one race see the same text and count the same words, whenever they are trained.
  void refuse_other_data(const Config& config, const TokenStore& store) const {
    const std::optional<TokenizerChoice> tokenizer = race_tokenizer(r_, config.valid);
    if (tokenizer && !tokenizer->notice().empty()) say(tokenizer->notice());
    const std::string path = data_path();
    Json now{{"training", data_digest(store)}};
    now["validation"] = sha256_file(*files_, config.valid.source) + sha256_file(*files_, config.valid.target);
    if (tokenizer) now["tokenizer"] = tokenizer->tokenizer.name();
    if (!fs::exists(path)) return files_->replace_file(path, now.dump() + "\n");
    const Json then = parse_json_object(read_text_file(path), path);
    for (const char* what : {"training", "validation"})
      if (then.value(what, Json()) != now[what])
        throw ConfigError(fmt::format(
            "{}: this race began with other {} data than there is now; restore the files, or choose another race.output", r_.output, what));
    if (then.contains("tokenizer") && now.contains("tokenizer") && then["tokenizer"] != now["tokenizer"])
      throw ConfigError(fmt::format(
          "{}: this race began with the tokenizer {} of BLEU and now has {}; set valid.tokenize, install MeCab again if that is what is "
          "missing, or choose another race.output",
          r_.output, then["tokenizer"].dump(), now["tokenizer"].dump()));
  }

  // What would end the race later: networks that cannot be, and disturbances that cannot happen as they are given.
  void check_places() const {
    int most = 0;
    const auto windows = [](const auto& list) {
      return std::any_of(list.begin(), list.end(), [](const auto& x) { return x.from_s > 0 || x.until_s < decltype(x){}.until_s; });
    };
    const bool windowed = windows(r_.cluster.stragglers) || windows(r_.cluster.link_faults);
    for (const RaceArm& arm : r_.arms)
      for (const int64_t count : arm.workers) {
        const int workers = static_cast<int>(count);
        most = std::max(most, ranks(arm, workers).count);
        for (const RaceNetwork& network : r_.networks) scenario(arm, workers, network.name);
        if (windowed && !networks_of(arm, workers).front().empty())
          throw ConfigError(
              fmt::format("{}: arm {}: stragglers and link-faults that come and go (from-s, until-s) are possible only where times are "
                          "replayed (docs/race.md); remove from-s and until-s, or the arm",
                          r_.file, arm.name));
      }
    for (const Straggler& s : r_.cluster.stragglers)
      if (s.rank >= most)
        throw ConfigError(fmt::format("{}: cluster.stragglers: there is no rank {} in any run, the largest has {}; give one below that",
                                      r_.file, s.rank, most));
    for (const LinkFault& f : r_.cluster.link_faults)
      if (f.node * r_.cluster.network.ranks_per_node >= most)
        throw ConfigError(fmt::format("{}: cluster.link-faults: there is no node {} in any run, the largest has {} ranks; give one that is",
                                      r_.file, f.node, most));
  }

  std::vector<const RaceArm*> arms() const {
    std::vector<const RaceArm*> all{&r_.baseline};
    for (const RaceArm& arm : r_.arms) all.push_back(&arm);
    return all;
  }

  int tuning_workers(const RaceArm& arm) const {
    const bool has = std::find(arm.workers.begin(), arm.workers.end(), r_.tuning_workers) != arm.workers.end();
    return static_cast<int>(has ? r_.tuning_workers : arm.workers.front());
  }

  RaceRanks ranks(const RaceArm& arm, int workers) const { return ranks_.at({arm.name, workers}); }
  // The networks that runs of the arm are for: "" = any.
  std::vector<std::string> networks_of(const RaceArm& arm, int workers) const {
    const RaceRanks its = ranks(arm, workers);
    if (its.count == 1 || !(arm.timed || its.alone)) return {""};
    return network_names();
  }
  // The networks that results of the run are for: "" = it has none, being a single rank.
  std::vector<std::string> places_of(const RaceRun& run) const {
    if (ranks(*run.arm, run.workers).count == 1) return {""};
    return run.network.empty() ? network_names() : std::vector<std::string>{run.network};
  }
  std::vector<std::string> network_names() const {
    std::vector<std::string> names;
    for (const RaceNetwork& n : r_.networks) names.push_back(n.name);
    return names;
  }

  RaceRun first_run(const RaceArm& arm) const {
    const int workers = tuning_workers(arm);
    return {&arm,
            workers,
            r_.seeds.front(),
            arm.rates.front(),
            networks_of(arm, workers).front(),
            r_.screening_tokens > 0 && arm.rates.size() > 1};
  }

  // The arm whose runs this one's are.
  const RaceArm& runner(const RaceArm& arm) const {
    for (const RaceArm& other : r_.arms)
      if (other.name == arm.trained_as) return other;
    return arm;
  }

  // Whether the arm gets all seeds.
  bool repeated(const RaceArm& arm) const {
    return &arm == &r_.baseline || arm.control || std::find(finalists_.begin(), finalists_.end(), arm.name) != finalists_.end();
  }

  // Counts runs and tokens, for progress. Until the finalists are known the first arms stand for them.
  void plan() {
    planned_runs_ = 0, planned_ = 0;
    const auto add = [&](const RaceRun& run, double times) {
      planned_runs_ += static_cast<int64_t>(times), planned_ += times * static_cast<double>(planned_tokens(r_, run));
    };
    int64_t left = ranked_ ? 0 : r_.finalists;
    for (const RaceArm* arm : arms()) {
      if (!arm->trained_as.empty()) continue;
      add(first_run(*arm), static_cast<double>(arm->rates.size()));
      const bool stands = !repeated(*arm) && left-- > 0;
      for (const int64_t workers : arm->workers) {
        const bool all_seeds = stands ||
                               std::any_of(r_.arms.begin(), r_.arms.end(),
                                           [&](const RaceArm& a) {
                                             return &runner(a) == arm && repeated(a) &&
                                                    std::find(a.workers.begin(), a.workers.end(), workers) != a.workers.end();
                                           }) ||
                               arm == &r_.baseline;
        RaceRun run = first_run(*arm);
        const double networks = static_cast<double>(networks_of(*arm, static_cast<int>(workers)).size());
        const double seeds = all_seeds ? static_cast<double>(r_.seeds.size()) : 1, known = workers == run.workers && !run.trial ? 1 : 0;
        run.workers = static_cast<int>(workers), run.trial = false;
        add(run, networks * seeds - known);
      }
    }
  }

  // ---- stages ----

  // Every arm and candidate with the first seed.
  void screen() {
    std::vector<RaceRun> runs;
    for (const RaceArm* arm : arms())
      for (const RaceRun& run : candidates(*arm)) runs.push_back(run);
    ensure_all(runs);
  }

  std::vector<RaceRun> candidates(const RaceArm& arm) const {
    std::vector<RaceRun> runs;
    if (!arm.trained_as.empty()) return runs;
    for (const double rate : arm.rates) runs.push_back(first_run(arm)), runs.back().rate = rate;
    return runs;
  }

  // The candidates that are done; the least loss chooses, once an arm's are all there.
  void choose_rates() {
    candidates_.clear();
    for (const RaceArm* arm : arms()) {
      const std::vector<RaceRun> runs = candidates(*arm);
      const size_t first = candidates_.size();
      for (const RaceRun& run : runs)
        if (const auto record = records_.find(run.name()); record != records_.end())
          candidates_.push_back({arm->name, run.workers, run.rate, record->second.loss(), false});
      if (runs.empty() || candidates_.size() - first < runs.size()) continue;
      const auto best = std::min_element(candidates_.begin() + static_cast<ptrdiff_t>(first), candidates_.end(),
                                         [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; });
      best->chosen = true;
      if (rates_.emplace(arm->name, best->rate).second && runs.size() > 1)
        say(fmt::format("{}: learning rate {:g} is the best of {}", arm->name, best->rate, runs.size()));
    }
    for (const RaceArm& arm : r_.arms)
      if (const auto rate = rates_.find(runner(arm).name); rate != rates_.end()) rates_[arm.name] = rate->second;
  }

  void all_workers() {
    std::vector<RaceRun> all;
    for (const RaceArm* arm : arms())
      for (const RaceRun& run : runs(*arm, r_.seeds.front())) all.push_back(trained(run));
    ensure_all(all);
  }

  void repeat() {
    finalists_ = results().ranking(), ranked_ = true;
    if (static_cast<int64_t>(finalists_.size()) > r_.finalists) finalists_.resize(static_cast<size_t>(r_.finalists));
    plan();
    if (r_.seeds.size() > 1 && !finalists_.empty())
      say(fmt::format("all seeds for one worker, controls and {}", fmt::join(finalists_, ", ")));
    std::vector<RaceRun> all;
    for (size_t s = 1; s < r_.seeds.size(); ++s)
      for (const RaceArm* arm : arms())
        if (repeated(*arm))
          for (const RaceRun& run : runs(*arm, r_.seeds[s])) all.push_back(trained(run));
    ensure_all(all);
  }

  // Sees to the records of all these runs, jobs_ at a time. The first thing that goes wrong ends it, when the runs under way have ended: a
  // signal ends those too.
  void ensure_all(const std::vector<RaceRun>& all) {
    std::vector<RaceRun> runs;
    std::set<std::string> names;
    for (const RaceRun& run : all)
      if (!records_.contains(run.name()) && names.insert(run.name()).second) runs.push_back(run);
    std::atomic<size_t> next{0};
    std::exception_ptr error;
    const auto work = [&] {
      try {
        for (size_t i; (i = next++) < runs.size();) {
          if (const int signal = StopSignals::received()) throw Interrupted{128 + signal};
          ensure(runs[i]);
        }
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error) error = std::current_exception();
        next = runs.size();
      }
    };
    {
      std::vector<std::jthread> others;
      for (size_t i = 1; i < std::min<size_t>(static_cast<size_t>(jobs_), runs.size()); ++i) others.emplace_back(work);
      work();
    }
    if (error) std::rethrow_exception(error);
  }

  // The run that is trained for this one.
  RaceRun trained(RaceRun run) const {
    run.arm = &runner(*run.arm);
    return run;
  }

  // The arm's runs with its rate.
  std::vector<RaceRun> runs(const RaceArm& arm, int64_t seed) const {
    std::vector<RaceRun> all;
    for (const int64_t workers : arm.workers)
      for (const std::string& network : networks_of(arm, static_cast<int>(workers)))
        all.push_back({&arm, static_cast<int>(workers), seed, rates_.at(arm.name), network, false});
    return all;
  }

  // ---- one run ----

  // One worker is disturbed by nothing, since it is what the others are measured by; nor is a run by what befalls ranks that it has not.
  Scenario scenario(const RaceArm& arm, int workers, const std::string& network) const {
    Scenario s = r_.cluster;
    const auto found = std::find_if(r_.networks.begin(), r_.networks.end(), [&](const RaceNetwork& n) { return n.name == network; });
    const RaceNetwork& net = found == r_.networks.end() ? r_.networks.front() : *found;
    const int count = ranks(arm, workers).count;
    // r is of a ring of the workers; one worker and its servers have the network of two.
    s.network = race_network(net, r_.cluster.network, count > 1 ? std::max(2, workers) : 1, gradient_bytes_, step_seconds_);
    std::erase_if(s.stragglers, [&](const Straggler& x) { return workers == 1 || x.rank >= count; });
    std::erase_if(s.link_faults, [&](const LinkFault& x) { return workers == 1 || x.node * s.network.ranks_per_node >= count; });
    return s;
  }
  Scenario scenario(const RaceRun& run) const { return scenario(*run.arm, run.workers, run.network); }

  std::string data_path() const { return join_path(r_.output, "data.json"); }
  std::string records_path() const { return join_path(r_.output, "records.json"); }

  void save(const RaceRun& run, const RaceRecord& record) {
    const std::lock_guard lock(mutex_);
    kept_[run.name()] = to_json(record);
    std::string text;  // a line for each run
    for (const auto& [name, json] : kept_.items())
      text += fmt::format("{}\n{}: {}", text.empty() ? "" : ",", Json(name).dump(), json.dump());
    files_->replace_file(records_path(), "{" + text + "\n}\n");
  }

  // Without what a result does not depend on. What the files have in them is checked by data.json, wherever they are.
  static Config without_places(Config config) {
    config.train.output = "run", config.log = {};
    for (CorpusFiles& corpus : config.data.train) corpus = {"", "", "", corpus.weight};
    for (std::string* path : {&config.valid.source, &config.valid.target, &config.vocab.source, &config.vocab.target}) path->clear();
    return config;
  }

  // The digest of everything that a run's result depends on.
  std::string configuration_of(const RaceRun& run, const Config& config) const {
    return sha256_hex(dump_config(without_places(config), false) + fmt::format("{}\n{}\n", run.workers, fmt::join(r_.final_metrics, " ")) +
                      (run.network.empty() ? "" : scenario_text(scenario(run))));
  }

  // Puts the record of the finished run into records_; trains it if need be.
  void ensure(const RaceRun& run) {
    const Config config = race_config(r_, run);
    const double tokens = static_cast<double>(planned_tokens(r_, run));
    RaceRecord record = kept(run, config);
    const std::string configuration = configuration_of(run, config);
    if (!record.configuration.empty() && record.configuration != configuration)
      throw ConfigError(
          fmt::format("{}: {} was trained with another recipe or configuration; restore that, remove its line and {}, or choose another "
                      "race.output",
                      records_path(), run.name(), run_directory(r_, run.name())));
    record.configuration = configuration;
    const bool fresh_run = !record.done;
    if (fresh_run) train(run, config, record);
    if (!run.trial)
      for (const std::string& network : places_of(run)) times_of(run, network, record);  // replayed now, so that tables are quick
    const std::lock_guard lock(mutex_);
    ++number_, passed_ += tokens;
    if (fresh_run) trained_ += tokens;
    records_[run.name()] = record;
    report(run, record);
    if (!ranked_) choose_rates();
    if (fresh_run && !run.trial) write(results(unfinished()));
  }

  // What is known of the run from before.
  RaceRecord kept(const RaceRun& run, const Config& config) {
    const std::lock_guard lock(mutex_);
    if (!kept_.contains(run.name())) return {};
    return record_from(kept_[run.name()], fmt::format("{}: {}", records_path(), run.name()), config.train.max_steps, !run.network.empty());
  }

  void report(const RaceRun& run, const RaceRecord& record) const {
    std::string text =
        fmt::format("run {} of {}: {}, {} worker{}, seed {}, learning rate {:g}{}: ", number_, planned_runs_, run.arm->name, run.workers,
                    run.workers == 1 ? "" : "s", run.seed, run.rate, run.network.empty() ? "" : ", on " + run.network);
    text += std::isfinite(record.loss()) ? fmt::format("cross-entropy {:.4f}", record.loss()) : "diverged";
    for (const auto& [metric, score] : record.finals) text += fmt::format(", {} {:.2f}", metric, score);
    if (trained_ > 0 && planned_ > passed_)
      text += fmt::format("; about {} left", duration_text((WallClock().seconds() - start_) / trained_ * (planned_ - passed_)));
    say(text);
  }

  // The tokens of the race, under a second name: every run finds them there.
  void link_data(const std::string& directory) const {
    const fs::path to = join_path(directory, "data");
    if (fs::exists(to)) return;
    const fs::path half = join_path(directory, "data.half");
    fs::remove_all(half), fs::create_directories(half);
    for (const auto& file : fs::directory_iterator(join_path(r_.output, "data"))) {
      std::error_code error;
      fs::create_hard_link(file.path(), half / file.path().filename(), error);
      if (error) fs::copy_file(file.path(), half / file.path().filename());
    }
    fs::rename(half, to);
  }

  // What an interruption leaves of the record: validations once all updates are done.
  void train(const RaceRun& run, const Config& config, RaceRecord& record) {
    const bool lost = !run.trial && !r_.final_metrics.empty() && !latest_checkpoint(*files_, config.train.output);
    if (!record.diverged && (record.validations.empty() || lost)) train_updates(run, config, record);
    if (std::isfinite(record.loss()) && !run.trial && !r_.final_metrics.empty()) record.finals = final_scores(config);
    record.done = true;
    save(run, record);
    if (r_.keep_models) return;
    for (const char* name : {"checkpoints", "best", "data"}) fs::remove_all(fs::path(config.train.output) / name);
  }

  void train_updates(const RaceRun& run, Config config, RaceRecord& record) {
    const std::string directory = config.train.output;
    const auto checkpoint = latest_checkpoint(*files_, directory);
    config.train.restart = !checkpoint;  // a run that was stopped before its first checkpoint, or whose models were not kept
    if (!progress_.updated) say(fmt::format("training {}: {} updates", run.name(), config.train.max_steps));
    files_->make_directories(directory);
    save(run, record);
    link_data(directory);
    Scenario cluster = scenario(run);
    const auto [ranks, alone] = this->ranks(*run.arm, run.workers);
    cluster.ranks = ranks;
    if (jobs_ > 1 && cluster.threads == 0) cluster.threads = std::max(1, usable_cores() / jobs_);
    if (run.network.empty()) cluster.modelled_collectives = true;  // its times do not count, and the sums are the same
    TimesRecorder recorder(ranks, run.workers, alone, run.network.empty() ? "" : join_path(directory, "times.json"));
    if (!run.network.empty()) recorder.continue_from(checkpoint ? checkpoint->step : 0);
    std::atomic<int> status{0};
    try {
      simulate(cluster, [&](World& world) {
        TrainingWatch watch = recorder.watch(world);
        if (run.network.empty()) watch = {};
        watch.silent = true;
        if (world.comm->rank() == 0 && progress_.updated)
          watch.updated = [&, record_times = watch.updated](int64_t step, int64_t tokens, int64_t aside) {
            if (record_times) record_times(step, tokens, aside);
            const std::lock_guard lock(say_mutex_);
            progress_.updated(run.name(), step, config.train.max_steps);
          };
        const int mine = run_training(config, world, watch);
        if (world.comm->rank() == 0) status = mine;
      });
    } catch (const DivergedError&) {
      record.diverged = true;
    }
    recorder.keep();
    if (status != 0) throw Interrupted{status};
    record.validations = validations_of(directory);
    if (!run.network.empty()) record.times = at_validations(recorder.times(), record);
    save(run, record);
  }

  std::map<std::string, double> final_scores(const Config& config) const {
    const auto last = latest_checkpoint(*files_, config.train.output);
    CHECK(last, "{} has no checkpoint", config.train.output);
    const LoadedModel model = load_model(*files_, last->directory, config.train.precision, 0);
    ValidConfig valid = config.valid;
    valid.metrics = r_.final_metrics;
    const World world = make_local_world();
    std::map<std::string, double> scores;
    for (const auto& [metric, score] : Validator(valid, model.description.vocabularies).run(*model.model, *world.comm).scores)
      scores[metric] = score;
    return scores;
  }

  // ---- times ----

  // Times of the run's validations on a network, kept in <race>/replays.
  std::map<int64_t, RaceTimes::At> times_of(const RaceRun& run, const std::string& network, const RaceRecord& record) const {
    if (record.validations.empty()) return {};
    if (!run.network.empty()) return record.times;
    const Config config = race_config(r_, run);
    const Scenario cluster = scenario(*run.arm, run.workers, network);
    std::map<int64_t, RaceTimes::At> times;
    Config timed = without_places(config);  // what matters for the time
    timed.train.optimizer.learning_rate = 1, timed.valid = {}, timed.checkpoint = {};
    static const std::string program = sha256_file(*files_, "/proc/self/exe");  // another one may charge other times
    const std::string key = sha256_hex(dump_config(timed, false) + scenario_text(cluster) + std::to_string(run.workers) + program);
    const std::string path = join_path(join_path(r_.output, "replays"), key.substr(0, 24) + ".json");
    if (fs::exists(path)) times = read_times(path);
    if (std::all_of(record.validations.begin(), record.validations.end(), [&](const auto& v) { return times.contains(v.first); }))
      return times;
    say(fmt::format("replaying {}{}", run.name(), network.empty() ? "" : " on " + network));
    times = at_validations(replay_times(config, cluster, *store_, vocabularies_->sizes(), run.workers, record.validations.back().first),
                           record);
    const std::lock_guard lock(replays_mutex_);  // runs that differ in their learning rates alone have one file
    write_times(path, times);
    return times;
  }

  static std::map<int64_t, RaceTimes::At> at_validations(const RaceTimes& all, const RaceRecord& record) {
    std::map<int64_t, RaceTimes::At> times;
    for (const auto& [step, scores] : record.validations) times[step] = all.at(step);
    return times;
  }

  static std::map<int64_t, RaceTimes::At> read_times(const std::string& path) {
    const Json json = parse_json_object(read_text_file(path), path);
    return times_from(json.contains("updates") ? json.at("updates") : Json(), path);
  }

  void write_times(const std::string& path, const std::map<int64_t, RaceTimes::At>& times) const {
    files_->replace_file(path, Json{{"updates", times_to_json(times)}}.dump() + "\n");
  }

  // ---- results ----

  RaceResult result(const RaceRun& run, const std::string& network, const RaceRecord& record) const {
    const bool diverged = !std::isfinite(record.loss());
    RaceResult result{run.arm->name, network, run.arm->control, run.workers, 0, run.seed, run.rate, diverged, {}, record.finals};
    if (!network.empty()) result.bandwidth_gbit_s = resolved(scenario(*run.arm, run.workers, network).network).inter.bandwidth_gbit_s;
    const std::map<int64_t, RaceTimes::At> times = times_of(run, network, record);
    for (const auto& [step, scores] : record.validations) {
      const RaceTimes::At& at = times.at(step);
      result.curve.push_back({step, at.tokens, at.bytes, 1e-9 * static_cast<double>(at.ns), scores});
    }
    return result;
  }

  // Of all runs with the chosen rates that are done.
  RaceResults results(const std::string& unfinished = "") const {
    std::vector<RaceResult> all;
    for (const int64_t seed : r_.seeds)
      for (const RaceArm* arm : arms()) {
        if (!rates_.contains(arm->name)) continue;  // its candidates are not all there yet
        for (const RaceRun& run : runs(*arm, seed)) {
          const auto record = records_.find(trained(run).name());
          if (record == records_.end() || !record->second.done) continue;
          for (const std::string& network : places_of(run)) all.push_back(result(run, network, record->second));
        }
      }
    return {r_, std::move(all), candidates_, unfinished};
  }

  std::string unfinished() const {
    const auto done = std::count_if(records_.begin(), records_.end(), [](const auto& r) { return r.second.done; });
    return fmt::format("{} of {} runs are done", done, planned_runs_);
  }

  void write(const RaceResults& results) const {
    files_->replace_file(join_path(r_.output, "results.csv"), results.csv());
    files_->replace_file(join_path(r_.output, "curves.csv"), results.curves_csv());
    files_->replace_file(join_path(r_.output, "table.md"), results.markdown());
    files_->replace_file(join_path(r_.output, "race.svg"), race_picture(results));
  }
};

}  // namespace

int run_race(const RaceRecipe& recipe, const RaceProgress& progress, int jobs) { return Race(recipe, progress, jobs).run(); }

}  // namespace starling
