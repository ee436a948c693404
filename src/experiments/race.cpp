#include "experiments/race.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "base/counted.h"
#include "base/start_threads.h"
#include "experiments/picture.h"
#include "experiments/race_runner.h"
#include "progress/progress.h"

namespace starling {

int run_race(const RaceRecipe& recipe, const RaceProgress& progress, int jobs) { return RaceRunner(recipe, progress, jobs).run(); }

int RaceRunner::run() {
  prepare();
  signals_.emplace();
  if (progress_.prepared) progress_.prepared();
  try {
    screen();
    all_workers();
    repeat();
  } catch (const RaceInterrupted& i) {
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

void RaceRunner::say(const std::string& line) const {
  const std::lock_guard lock(say_mutex_);
  progress_.say(line);
}

// Whether the arm is run with all seeds.
bool RaceRunner::repeated(const RaceArm& arm) const {
  return &arm == &r_.baseline || arm.control || std::find(finalists_.begin(), finalists_.end(), arm.name) != finalists_.end();
}

// Counts runs and tokens for progress. Until the finalists are known, the first arms take their place.
void RaceRunner::count_planned() {
  planned_runs_ = 0;
  planned_ = 0;
  const auto add = [&](const RaceRun& run, double times) {
    planned_runs_ += static_cast<int64_t>(times);
    planned_ += times * static_cast<double>(planned_tokens(r_, run));
  };
  int64_t left = ranked_ ? 0 : r_.finalists;
  for (const RaceArm* arm : plan_.arms()) {
    if (!arm->trained_as.empty()) continue;
    std::set<int> known;  // numbers of workers for which a candidate is the run itself
    for (const int workers : plan_.tuned_at(*arm)) {
      std::vector<RaceRun> runs = plan_.candidates(*arm, workers);
      if (runs.front().rung == 0) known.insert(workers);
      for (size_t count = runs.size(); count > 0; count = plan_.next_rung(count, runs.front().rung++))
        add(runs.front(), static_cast<double>(count));
    }
    const bool stands = !repeated(*arm) && left-- > 0;
    for (const int64_t workers : arm->workers) {
      const bool all_seeds = stands ||
                             std::any_of(r_.arms.begin(), r_.arms.end(),
                                         [&](const RaceArm& a) {
                                           return &plan_.runner(a) == arm && repeated(a) &&
                                                  std::find(a.workers.begin(), a.workers.end(), workers) != a.workers.end();
                                         }) ||
                             arm == &r_.baseline;
      RaceRun run = plan_.candidates(*arm, static_cast<int>(workers)).front();
      const double networks = static_cast<double>(plan_.networks_of(*arm, run.workers).size());
      const double seeds = all_seeds ? static_cast<double>(r_.seeds.size()) : 1;
      run.rung = 0;
      add(run, networks * seeds - static_cast<double>(known.count(run.workers)));
    }
  }
}

std::vector<RaceRun> RaceRunner::candidates(const RaceArm& arm, int workers, int rung) const {
  std::vector<RaceRun> all = plan_.candidates(arm, workers);
  const int first = all.front().rung;
  if (rung < first || (rung > first && first == 0)) return {};
  for (int at = first; at < rung; ++at) {
    std::vector<std::pair<double, RaceRun>> ranked;
    for (const RaceRun& run : all) {
      const auto record = records_.find(run.name());
      if (record == records_.end() || !record->second.done) return {};
      ranked.emplace_back(record->second.loss(), run);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    ranked.resize(plan_.next_rung(ranked.size(), at));
    if (ranked.empty()) return {};
    all.clear();
    for (const auto& [loss, run] : ranked) {
      all.push_back(run);
      all.back().rung = at + 1;
    }
  }
  return all;
}

// Runs every arm and candidate with the first seed, rung by rung.
void RaceRunner::screen() {
  for (int rung = 0; rung <= r_.screening_rungs; ++rung) {
    std::vector<RaceRun> runs;
    for (const RaceArm* arm : plan_.arms())
      for (const int workers : plan_.tuned_at(*arm))
        for (const RaceRun& run : candidates(*arm, workers, rung)) runs.push_back(run);
    ensure_all(runs);
  }
}

// Collects the finished candidates. Once the last rung is complete, the candidate with the lowest loss is chosen.
void RaceRunner::choose() {
  candidates_.clear();
  for (const RaceArm* arm : plan_.arms())
    for (const int workers : plan_.tuned_at(*arm)) {
      std::optional<size_t> best;
      for (int rung = plan_.candidates(*arm, workers).front().rung;; ++rung) {
        const std::vector<RaceRun> runs = candidates(*arm, workers, rung);
        if (runs.empty()) break;
        best.reset();
        const size_t first = candidates_.size();
        for (const RaceRun& run : runs)
          if (const auto record = records_.find(run.name()); record != records_.end() && record->second.done)
            candidates_.push_back({arm->name, workers, planned_tokens(r_, run), run.rate, run.second, record->second.loss(), false});
        if (candidates_.size() - first < runs.size()) break;
        best = std::min_element(candidates_.begin() + static_cast<ptrdiff_t>(first), candidates_.end(),
                                [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; }) -
               candidates_.begin();
        if (plan_.next_rung(runs.size(), rung) > 0) best.reset();
      }
      if (!best) continue;
      Candidate& winner = candidates_[*best];
      winner.chosen = true;
      const size_t all = plan_.candidates(*arm, workers).size();
      if (choices_.emplace(std::pair(arm->name, workers), RaceChoice{winner.rate, winner.second}).second && all > 1)
        say(fmt::format("{}{}: learning rate {:g}{} is the best of {}", arm->name, r_.tune_each ? ", " + counted(workers, "worker") : "",
                        winner.rate, winner.second.empty() ? "" : fmt::format(", {} {}", r_.second_key, winner.second), all));
    }
}

std::optional<RaceChoice> RaceRunner::chosen(const RaceArm& arm, int workers) const {
  const auto found = choices_.find({plan_.runner(arm).name, plan_.tuned_for(arm, workers)});
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<RaceRun> RaceRunner::runs(const RaceArm& arm, int64_t seed) const {
  return plan_.runs(arm, seed, [this](const RaceArm& a, int workers) { return chosen(a, workers); });
}

void RaceRunner::all_workers() {
  std::vector<RaceRun> all;
  for (const RaceArm* arm : plan_.arms())
    for (const RaceRun& run : runs(*arm, r_.seeds.front())) all.push_back(plan_.trained(run));
  ensure_all(all);
}

void RaceRunner::repeat() {
  finalists_ = results().ranking();
  ranked_ = true;
  if (static_cast<int64_t>(finalists_.size()) > r_.finalists) finalists_.resize(static_cast<size_t>(r_.finalists));
  count_planned();
  if (r_.seeds.size() > 1 && !finalists_.empty())
    say(fmt::format("all seeds for one worker, controls and {}", fmt::join(finalists_, ", ")));
  std::vector<RaceRun> all;
  for (size_t s = 1; s < r_.seeds.size(); ++s)
    for (const RaceArm* arm : plan_.arms())
      if (repeated(*arm))
        for (const RaceRun& run : runs(*arm, r_.seeds[s])) all.push_back(plan_.trained(run));
  ensure_all(all);
}

// Ensures that all these runs have records, jobs_ at a time. After the first error no run is started, and the error is thrown when the runs
// in progress have ended; a signal ends those too.
void RaceRunner::ensure_all(const std::vector<RaceRun>& all) {
  std::vector<RaceRun> runs;
  std::set<std::string> names;
  for (const RaceRun& run : all)
    if (!records_.contains(run.name()) && names.insert(run.name()).second) runs.push_back(run);
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  const auto work = [&](size_t) {
    try {
      for (size_t i; (i = next++) < runs.size();) {
        if (const int signal = StopSignals::received()) throw RaceInterrupted{128 + signal};
        ensure(runs[i]);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error) error = std::current_exception();
      next = runs.size();
    }
  };
  work_side_by_side(std::min<size_t>(static_cast<size_t>(jobs_), runs.size()), work);
  if (error) std::rethrow_exception(error);
}

// Puts the run's record into records_, training the run if necessary.
void RaceRunner::ensure(const RaceRun& run) {
  const Config config = race_config(r_, run);
  const double tokens = static_cast<double>(planned_tokens(r_, run));
  RaceRecord record = kept(run, config);
  const std::string configuration = configuration_of(run, config);
  if (!record.configuration.empty() && record.configuration != configuration && record.configuration != configuration_of(run, config, true))
    throw ConfigError(
        fmt::format("{}: {} was trained with another recipe or configuration; restore that, remove its line and {}, or choose another "
                    "race.output",
                    records_path(), run.name(), run_directory(r_, run.name())));
  record.configuration = configuration;
  const bool fresh_run = !record.done;
  if (fresh_run) train(run, config, record);
  if (run.rung == 0)
    for (const std::string& network : plan_.places_of(run)) {  // replays now, so that writing tables is fast
      if (const int signal = StopSignals::received()) throw RaceInterrupted{128 + signal};
      times_of(run, network, record);
    }
  const std::lock_guard lock(mutex_);
  ++number_;
  passed_ += tokens;
  if (fresh_run) trained_ += tokens;
  records_[run.name()] = record;
  report(run, record);
  if (!ranked_) choose();
  if (fresh_run && run.rung == 0) write(results(unfinished()));
}

void RaceRunner::report(const RaceRun& run, const RaceRecord& record) const {
  std::string text = fmt::format("run {} of {}: {}, {} worker{}, seed {}, learning rate {:g}{}{}: ", number_, planned_runs_, run.arm->name,
                                 run.workers, run.workers == 1 ? "" : "s", run.seed, run.rate,
                                 run.second.empty() ? "" : fmt::format(", {} {}", r_.second_key, run.second),
                                 run.network.empty() ? "" : ", on " + run.network);
  text += std::isfinite(record.loss()) ? fmt::format("cross-entropy {:.4f}", record.loss()) : "diverged";
  for (const auto& [metric, score] : record.finals) text += fmt::format(", {} {:.2f}", metric, score);
  if (trained_ > 0 && planned_ > passed_)
    text += fmt::format("; about {} left", duration_text((WallClock().seconds() - start_) / trained_ * (planned_ - passed_)));
  say(text);
}

// Returns the results of all finished runs with the chosen rates.
RaceResults RaceRunner::results(const std::string& unfinished) const {
  std::vector<RaceResult> all;
  for (const int64_t seed : r_.seeds)
    for (const RaceArm* arm : plan_.arms()) {
      for (const RaceRun& run : runs(*arm, seed)) {
        const auto record = records_.find(plan_.trained(run).name());
        if (record == records_.end() || !record->second.done) continue;
        for (const std::string& network : plan_.places_of(run)) all.push_back(result(run, network, record->second));
      }
    }
  return {r_, std::move(all), candidates_, unfinished};
}

std::string RaceRunner::unfinished() const {
  const auto done = std::count_if(records_.begin(), records_.end(), [](const auto& r) { return r.second.done; });
  return fmt::format("{} of {} runs are done", done, planned_runs_);
}

void RaceRunner::write(const RaceResults& results) const {
  files_->replace_file(join_path(r_.output, "results.csv"), results.csv());
  files_->replace_file(join_path(r_.output, "curves.csv"), results.curves_csv());
  files_->replace_file(join_path(r_.output, "table.md"), results.markdown());
  files_->replace_file(join_path(r_.output, "race.svg"), race_picture(results));
}

}  // namespace starling
