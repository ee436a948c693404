// From the curves of a race to its figures: what it took to reach a target, speed-ups over one worker, intervals over seeds, tables and a
// recommendation. All times are virtual.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/recipe.h"

namespace starling {

// A validation.
struct CurvePoint {
  int64_t step = 0, tokens = 0;          // target tokens of all workers
  int64_t bytes = 0;                     // sent by all ranks, servers included, over the number of workers
  double seconds = 0;                    // virtual
  std::map<std::string, double> scores;  // by metric
};

struct RaceResult {
  std::string arm, network;  // network: "" for a run of one rank, which has none
  bool control = false;
  int workers = 1;
  double bandwidth_gbit_s = 0;
  int64_t seed = 1;
  double rate = 0;
  bool diverged = false;  // its loss became infinite or no number; then it reaches nothing
  std::vector<CurvePoint> curve;
  std::map<std::string, double> final_scores;  // race.final-metrics
  std::string second = "";                     // of race.second-key

  double final_score(const std::string& metric) const;  // of the last validation; NaN: none
  double tokens_per_second() const;                     // NaN: none
};

// The first time a curve reaches a value, linear between validations; the first one, and one after a score that is no number, count as they
// are. Nothing if it never does.
struct Reached {
  double tokens = 0, seconds = 0, bytes = 0;
};
std::optional<Reached> first_reached(std::span<const CurvePoint> curve, const std::string& metric, double value);

// Mean and half-width of the 95 % interval of the mean (Student's t; 0 for a single value); NaN mean without values.
struct Interval {
  double mean = 0, half = 0;
  size_t count = 0;
};
Interval interval(std::span<const double> values);

// A candidate of the screening.
struct Candidate {
  std::string arm;
  int workers = 1;
  int64_t tokens = 0;  // that it trained on
  double rate = 0;
  std::string second;
  double loss = 0;  // of the last validation; infinite if it diverged
  bool chosen = false;
};

class RaceResults {
 public:
  // unfinished: what is missing yet, for the heading; "" = nothing.
  RaceResults(const RaceRecipe& recipe, std::vector<RaceResult> results, std::vector<Candidate> candidates = {},
              std::string unfinished = "");

  // What one arm did in one place, over its seeds.
  struct Row {
    std::string arm;
    bool control = false;
    int workers = 1;
    double rate = 0;
    std::string second = "";
    size_t seeds = 0, diverged = 0;
    Interval tokens, seconds, bytes;   // to the target, of the seeds that reached it
    Interval convergence, throughput;  // speed-ups over one worker, seed by seed
    Interval loss;                     // cross-entropy of the last validation
    double baseline_loss = 0;          // one worker's, of the same seeds; NaN if it diverged
    std::map<std::string, Interval> finals;
  };
  // One worker first, then the arms in the recipe's order; those with one worker are shown with every number of workers.
  std::vector<Row> rows(const std::string& network, int workers, const RaceTarget& target) const;
  // Above 1, ascending; just 1 if there are none.
  std::vector<int> worker_counts() const;
  // The value to reach; NaN if one worker's run of that seed is not there or diverged.
  double target_value(const RaceTarget& target, int64_t seed) const;

  // The arm with the least time to the first target among those whose final loss is at most 1 % above one worker's; null if there is none.
  std::optional<Row> recommended(const std::string& network, int workers) const;
  // One line for each network and number of workers; of a target that means nothing (experiments/target_check.h) it says why in place of an
  // arm.
  std::vector<std::string> recommendations() const;
  // The arms that are no controls, best first. A place is a network and a number of workers. Arms that reach the first target in a larger
  // share of their places come first, then those with the least time relative to the fastest one of each place (geometric mean), then by
  // loss.
  std::vector<std::string> ranking() const;

  std::string csv() const;         // a line for each run, network and target
  std::string curves_csv() const;  // a line for each validation
  std::string markdown() const;
  const std::vector<RaceResult>& results() const { return results_; }
  const std::string& unfinished() const { return unfinished_; }
  const RaceRecipe& recipe() const { return recipe_; }
  bool here(const RaceResult& r, const std::string& network, int workers) const;

 private:
  const RaceResult* baseline(int64_t seed) const;  // null if it diverged
  std::optional<Reached> reached(const RaceResult& r, const RaceTarget& target, double value) const;
  std::string target_line(const RaceTarget& target) const;
  std::string recommendation(const Row& best) const;
  std::string verdict(const std::string& network, int workers) const;
  // Whether every arm is a control, as in the rungs of a tuning: then the loss at the end is all that is compared.
  bool only_controls() const;
  Row row(const RaceArm& arm, const std::string& network, int workers, const RaceTarget& target) const;
  std::string table(const std::string& network, int workers, const RaceTarget& target) const;
  std::string tuned_text(double rate, const std::string& second) const;
  std::string tuning() const;

  const RaceRecipe& recipe_;
  std::vector<RaceResult> results_;
  std::vector<Candidate> candidates_;
  std::string unfinished_;
};

// "cross-entropy 2.3", "cross-entropy of one worker at its end".
std::string target_text(const RaceTarget& target);

}  // namespace starling
