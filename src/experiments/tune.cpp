#include "experiments/tune.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/task_progress.h"
#include "base/text_files.h"
#include "comm/clock.h"
#include "experiments/race_runner.h"
#include "experiments/record.h"
#include "run/fine_tuning.h"
#include "run/trainer.h"
#include "settings/checks.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr double kProbeMinutes = 0.35;
constexpr int64_t kProbeUpdates = 200, kProbeFirst = 3;  // the first updates allocate memory and are slower
constexpr double kSpared = 0.85;            // part of the speed that remains after validation, the vocabulary and concurrent jobs
constexpr const char* kOwn = "one-worker";  // a race's name for its unchanged configuration

struct Trial {
  std::string name;
  double loss = 0;                       // last validation's cross-entropy, mean over the seeds; infinite: diverged
  std::vector<double> losses;            // by seed
  std::map<std::string, double> finals;  // means
};

class Tuning {
 public:
  explicit Tuning(const TuneOptions& o) : o_(o), files_(real_file_system()), config_(load_new_config(o.config, o.settings)) {
    // The rungs read the configuration file themselves.
    o_.settings.insert(o_.settings.begin(), config_.chosen.begin(), config_.chosen.end());
    refuse_cleaning(config_, "tune");
    if (!config_.valid.enabled())
      throw ConfigError("tune compares by cross-entropy on a validation text; set valid.source and valid.target");
    if (!config_.valid.sets.empty())
      throw ConfigError("tune compares on one text; set valid.source and valid.target in place of valid.sets");
    if (config_.train.objective != Objective::likelihood)
      throw ConfigError("tune does not support train.objective mixed; tune with likelihood first");
    require_tunable(o.keys);  // before anything is measured
    files_->make_directories(o.output);
  }

  int run() {
    const double start = steady_seconds();
    plan();
    std::vector<std::string> left;
    for (const TuneCandidate& candidate : candidates_) left.push_back(candidate.name);
    describe();
    if (o_.dry_run) return 0;
    std::string table;
    for (size_t i = 0; i < rungs_.size(); ++i) {
      left.resize(std::min(left.size(), static_cast<size_t>(rungs_[i].candidates)));
      const std::string recipe = write_recipe(i, left);
      RaceRecipe race = load_recipe(recipe);
      if (o_.set_rates) o_.set_rates(race);
      o_.progress.say(fmt::format("rung {} of {}: {} runs of {} target tokens; {} of {} have passed", i + 1, rungs_.size(),
                                  (left.size() + 1) * rungs_[i].seeds.size(), rungs_[i].tokens, duration_text(steady_seconds() - start),
                                  duration_text(60 * o_.minutes)));
      if (const int status = run_race(race, o_.progress, o_.jobs); status != 0) return status;
      const std::vector<Trial> trials = ranked(race);
      left.clear();
      for (const Trial& trial : trials)
        if (trial.name != kOwn) left.push_back(trial.name);
      table += rung_table(i, trials);
      files_->replace_file(join_path(o_.output, "table.md"), "# Tuning\n\n" + table);
      if (i + 1 == rungs_.size()) conclude(trials);
    }
    return 0;
  }

 private:
  // Measures the target tokens/s of one run by training briefly.
  double measured_speed() const {
    Config c = config_;
    c.train.output = join_path(o_.output, "probe");
    c.train.restart = true;
    c.train.threads = 1;
    c.train.max_minutes = kProbeMinutes;
    c.train.max_steps = kProbeUpdates;
    c.train.max_tokens = 0;
    c.train.max_epochs = 0;
    c.train.optimizer.schedule = RateSchedule::constant;
    c.valid.source.clear();
    c.valid.target.clear();
    c.log.progress = "never";
    c.log.every = c.checkpoint.every = kProbeUpdates;
    set_vocabulary(c);
    fs::remove_all(c.train.output);
    o_.progress.say("measuring the speed of one run");
    const WallClock wall;
    double from = 0, to = 0, tokens = 0;
    TrainingWatch watch;
    watch.silent = true;
    watch.updated = [&](int64_t step, int64_t own, int64_t) {
      to = wall.seconds();
      if (o_.progress.updated) o_.progress.updated("measuring the speed of one run", step, kProbeUpdates);
      if (step <= kProbeFirst)
        from = to;
      else
        tokens += static_cast<double>(own);
    };
    // The first attempt may spend its time on creating the vocabulary, which the second one finds ready.
    for (int attempt = 0; attempt < 2 && tokens == 0; ++attempt) {
      World world = make_local_world();
      if (const int status = run_training(c, world, watch); status != 0) throw RaceInterrupted{status};
      fs::remove_all(c.train.output);
    }
    if (tokens == 0)
      throw ConfigError(
          fmt::format("fewer than {} updates in {:g} s: a model of this size cannot be tuned here; take a smaller preset, or "
                      "a machine that is faster",
                      kProbeFirst + 1, 60 * kProbeMinutes));
    return tokens / (to - from);
  }

  void set_vocabulary(Config& c) const {
    if (c.vocab.source.empty()) c.vocab.source = join_path(o_.output, c.vocab.joint ? "vocab.spm" : "source.spm");
    if (c.vocab.target.empty() && !c.vocab.joint) c.vocab.target = join_path(o_.output, "target.spm");
  }

  // Plans the rungs from the speed that was measured when the tuning began.
  void plan() {
    const std::string path = join_path(o_.output, "plan.json");
    OrderedJson now{
        {"minutes", o_.minutes}, {"jobs", o_.jobs}, {"candidates", o_.candidates}, {"keys", o_.keys}, {"train.seed", config_.train.seed}};
    double speed = o_.tokens_per_second;
    if (files_->exists(path)) {
      const nlohmann::json then = parse_json_object(read_text_file(path), path);
      for (const auto& [key, value] : now.items())
        if (!then.contains(key) || then[key] != nlohmann::json(value))
          throw ConfigError(fmt::format("{}: this tuning began with a different {}; restore it, or choose another --output", path,
                                        key == "jobs"      ? "number of --jobs"
                                        : key == "minutes" ? "--budget"
                                                           : "--" + key));
      if (!then.contains("tokens_per_second") || !then["tokens_per_second"].is_number() || !(then["tokens_per_second"] > 0))
        throw DataError(fmt::format("{}: tokens_per_second is not a number above 0; remove the file, and the tuning starts again", path));
      speed = then["tokens_per_second"];
    } else if (speed == 0) {
      speed = measured_speed();
    }
    rungs_ = tune_rungs(kSpared * 60 * o_.minutes * speed * o_.jobs, o_.candidates, config_.train.batch_tokens);
    keys_ = o_.keys.empty() ? keys_by_length(run_tokens(), rungs_.back().tokens) : o_.keys;
    candidates_ = draw_candidates(config_, keys_, o_.candidates, config_.train.seed);
    now["tokens_per_second"] = speed_ = speed;
    if (!o_.dry_run) files_->replace_file(path, now.dump() + "\n");
  }

  // Returns the target tokens of the configuration's own run; 0: unknown.
  int64_t run_tokens() const {
    const TrainConfig& t = config_.train;
    return t.max_tokens > 0 ? t.max_tokens : t.max_steps * t.batch_tokens;
  }

  void describe() const {
    o_.progress.say(
        fmt::format("one run trains on about {:.0f} target tokens/s; {} at a time, {:.0f} minutes:", speed_, o_.jobs, o_.minutes));
    for (size_t i = 0; i < rungs_.size(); ++i)
      o_.progress.say(fmt::format("  rung {}: {} and the configuration's own values, {} target tokens each{}; about {}", i + 1,
                                  counted_candidates(rungs_[i].candidates), rungs_[i].tokens,
                                  rungs_[i].seeds.size() > 1 ? fmt::format(", {} seeds", rungs_[i].seeds.size()) : "",
                                  duration_text(rung_tokens(rungs_[i]) / speed_ / o_.jobs)));
    std::vector<std::string> kept = o_.keys.empty() ? tunable_keys() : std::vector<std::string>();
    std::erase_if(kept, [&](const std::string& key) { return std::find(keys_.begin(), keys_.end(), key) != keys_.end(); });
    if (!kept.empty())
      o_.progress.say(fmt::format(
          "{} are not tuned: a whole run has {} target tokens, {:.1f} times the last rung's, and short runs favour less of "
          "both; name them in --keys to tune them anyway",
          fmt::join(kept, " and "), run_tokens(), static_cast<double>(run_tokens()) / static_cast<double>(rungs_.back().tokens)));
    for (const TuneCandidate& candidate : candidates_) o_.progress.say(fmt::format("  {}: {}", candidate.name, values(candidate)));
  }

  static std::string counted_candidates(int count) { return fmt::format("{} candidate{}", count, count == 1 ? "" : "s"); }

  static std::string values(const TuneCandidate& candidate) {
    std::string text = fmt::format("learning-rate {:g}", candidate.rate);
    for (const auto& [key, value] : candidate.keys) text += fmt::format(", {} {}", key.substr(key.find('.') + 1), value);
    return text;
  }

  // Settings of every run of a rung: a schedule that ends with the run, and a warm-up of at most a tenth of it.
  std::vector<Override> shared(const TuneRung& rung) const {
    std::vector<Override> keys = o_.settings;
    Config c = config_;
    set_vocabulary(c);
    keys.emplace_back("vocab.source", c.vocab.source);
    if (!c.vocab.joint) keys.emplace_back("vocab.target", c.vocab.target);
    if (!has_end(c.train.optimizer.schedule)) keys.emplace_back("train.schedule", "linear");
    keys.emplace_back("train.warmup-tokens", fmt::format("{}", warmup_tokens(rung)));
    return keys;
  }
  int64_t warmup_tokens(const TuneRung& rung) const {
    const TrainConfig& t = config_.train;
    return std::min(rung.tokens / 10, t.warmup_tokens > 0 ? t.warmup_tokens : t.optimizer.warmup * t.batch_tokens);
  }

  // Writes the rung's race as a recipe that people can read and run.
  std::string write_recipe(size_t i, const std::vector<std::string>& names) const {
    const TuneRung& rung = rungs_[i];
    const auto quoted = [](const std::string& text) { return OrderedJson(text).dump(); };
    std::string text = "# Written by starling tune.\nrace:\n";
    if (!o_.config.empty()) text += fmt::format("  train: {}\n", quoted(fs::absolute(o_.config).string()));
    text += fmt::format("  output: {}\n  workers: [1]\n  seeds: [{}]\n  tokens: {}\n  validate-every: {}\n  learning-rates: [{}]\n",
                        quoted(join_path(o_.output, fmt::format("rung-{}", i + 1))), fmt::join(rung.seeds, ", "), rung.tokens, rung.tokens,
                        config_.train.optimizer.learning_rate);
    if (i + 1 == rungs_.size()) text += "  final-metrics: [bleu]\n";
    for (const auto& [key, value] : shared(rung)) text += fmt::format("  {}: {}\n", key, quoted(value));
    text += "  arms:\n";
    for (const std::string& name : names) {
      const TuneCandidate& candidate = named(name);
      text += fmt::format("    - name: {}\n      control: true\n      learning-rates: [{}]\n", name, candidate.rate);
      for (const auto& [key, value] : candidate.keys) text += fmt::format("      {}: {}\n", key, quoted(value));
    }
    const std::string path = join_path(o_.output, fmt::format("rung-{}.yml", i + 1));
    files_->replace_file(path, text);
    return path;
  }

  const TuneCandidate& named(const std::string& name) const {
    return *std::find_if(candidates_.begin(), candidates_.end(), [&](const TuneCandidate& c) { return c.name == name; });
  }

  // Reads the results from the race's records, lowest cross-entropy first.
  static std::vector<Trial> ranked(const RaceRecipe& race) {
    const std::string path = join_path(race.output, "records.json");
    const nlohmann::json records = parse_json_object(read_text_file(path), path);
    std::vector<const RaceArm*> arms{&race.baseline};
    for (const RaceArm& arm : race.arms) arms.push_back(&arm);
    std::vector<Trial> trials;
    for (const RaceArm* arm : arms) {
      Trial& trial = trials.emplace_back();
      trial.name = arm->name;
      for (const int64_t seed : race.seeds) {
        const RaceRun run{arm, 1, seed, arm->rates.front(), ""};
        const RaceRecord record =
            record_from(records.at(run.name()), fmt::format("{}: {}", path, run.name()), race_updates(race_config(race, run), 1), false);
        trial.losses.push_back(record.loss());
        trial.loss += record.loss() / static_cast<double>(race.seeds.size());
        for (const auto& [metric, score] : record.finals) trial.finals[metric] += score / static_cast<double>(race.seeds.size());
      }
    }
    std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.loss < b.loss; });
    return trials;
  }

  std::string values(const std::string& name) const { return name == kOwn ? "as they are" : values(named(name)); }

  std::string rung_table(size_t i, const std::vector<Trial>& trials) const {
    const bool last = i + 1 == rungs_.size();
    std::string text = fmt::format("## Rung {}: {} target tokens per run\n\n| values | cross-entropy |{}\n|---|---|{}\n", i + 1,
                                   rungs_[i].tokens, last ? " of each seed | bleu |" : "", last ? "---|---|" : "");
    for (const Trial& trial : trials) {
      text += fmt::format("| {} | {} |", values(trial.name), std::isfinite(trial.loss) ? fmt::format("{:.4f}", trial.loss) : "diverged");
      if (last)
        text += fmt::format(" {:.4f} | {:.2f} |", fmt::join(trial.losses, ", "), trial.finals.count("bleu") ? trial.finals.at("bleu") : 0);
      text += "\n";
    }
    return text + "\n";
  }

  // Writes best.yml and reports how certain the improvement is.
  void conclude(const std::vector<Trial>& trials) const {
    const Trial& best = trials.front();
    if (!std::isfinite(best.loss)) throw DivergedError("every run of the last rung diverged; lower train.learning-rate");
    const Trial& own = *std::find_if(trials.begin(), trials.end(), [](const Trial& t) { return t.name == kOwn; });
    double squares = 0, count = 0;  // of the differences between seeds with the same values
    for (const Trial& trial : trials)
      for (const double loss : trial.losses)
        if (std::isfinite(trial.loss)) squares += (loss - trial.loss) * (loss - trial.loss), count += 1;
    const double seeds = static_cast<double>(best.losses.size()), freedom = count * (seeds - 1) / seeds;
    const double error = std::sqrt(squares / std::max(freedom, 1.0) * 2 / seeds);  // standard error of a difference of two means
    std::vector<Override> keys = o_.settings;
    const TuneRung& rung = rungs_.back();
    if (best.name != kOwn) {
      const TuneCandidate& c = named(best.name);
      keys.insert(keys.end(), c.keys.begin(), c.keys.end());
      keys.emplace_back("train.learning-rate", fmt::format("{}", c.rate));
    }
    if (!has_end(config_.train.optimizer.schedule)) keys.emplace_back("train.schedule", "linear");
    keys.emplace_back("train.warmup-tokens", fmt::format("{}", warmup_tokens(rung)));
    keys.emplace_back("train.max-tokens", fmt::format("{}", rung.tokens));
    const std::string path = join_path(o_.output, "best.yml");
    files_->replace_file(path, "# Found by starling tune; train.max-tokens is what the last rung had, so raise it.\n" +
                                   dump_config(tuned_config(o_.config, keys), false));
    o_.progress.say(fmt::format("best: {}: cross-entropy {:.4f}", values(best.name), best.loss));
    if (best.name == kOwn)
      o_.progress.say("no candidate is better than the configuration's own values");
    else if (!std::isfinite(own.loss))
      o_.progress.say("the run with the configuration's own values diverged");
    else
      o_.progress.say(fmt::format("that is {:.4f} less than with the configuration's own values ({:.4f}), {}", own.loss - best.loss,
                                  own.loss,
                                  own.loss - best.loss > 2 * error
                                      ? fmt::format("more than twice the standard error over {} seeds ({:.4f})", best.losses.size(), error)
                                      : fmt::format("within twice the standard error over {} seeds ({:.4f})", best.losses.size(), error)));
    o_.progress.say(
        fmt::format("{} and table.md are in {}; for a longer run: starling train -c {} --train.output run --train.max-tokens {}",
                    file_name(path), o_.output, path, 3 * rung.tokens));
  }

  TuneOptions o_;
  std::unique_ptr<FileSystem> files_;
  Config config_;
  std::vector<std::string> keys_;  // tuned keys
  std::vector<TuneCandidate> candidates_;
  std::vector<TuneRung> rungs_;
  double speed_ = 0;
};

}  // namespace

int run_tune(const TuneOptions& options) {
  try {
    return Tuning(options).run();
  } catch (const RaceInterrupted& i) {
    return i.status;
  }
}

}  // namespace starling
