// Computes a race's figures from its curves: what reaching a target took, speed-ups over one worker, intervals over seeds, tables and a
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

// One validation.
struct CurvePoint {
  int64_t step = 0, tokens = 0;          // target tokens of all workers
  int64_t bytes = 0;                     // sent by all ranks including servers, divided by the number of workers
  double seconds = 0;                    // virtual
  std::map<std::string, double> scores;  // by metric
};

struct RaceResult {
  std::string arm, network;  // network: "" for a run of one rank
  bool control = false;
  int workers = 1;
  double bandwidth_gbit_s = 0;
  int64_t seed = 1;
  double rate = 0;
  bool diverged = false;  // its loss became infinite or NaN; it then reaches no target
  std::vector<CurvePoint> curve;
  std::map<std::string, double> final_scores;  // race.final-metrics
  std::string second = "";                     // value of race.second-key

  double final_score(const std::string& metric) const;  // score of the last validation; NaN if there is none
  double tokens_per_second() const;                     // NaN if there is no validation
};

// Returns when a curve first reaches a value, interpolated linearly between validations. The first validation, and one that follows a score
// that is not finite, count as they are. Returns nothing if the value is never reached.
struct Reached {
  double tokens = 0, seconds = 0, bytes = 0;
};
std::optional<Reached> first_reached(std::span<const CurvePoint> curve, const std::string& metric, double value);

// Mean and half-width of the 95 % interval of the mean (Student's t); half is 0 for a single value, and mean is NaN without values.
struct Interval {
  double mean = 0, half = 0;
  size_t count = 0;
};
Interval interval(std::span<const double> values);

// A candidate in the screening.
struct Candidate {
  std::string arm;
  int workers = 1;
  int64_t tokens = 0;  // target tokens that it trained on
  double rate = 0;
  std::string second;
  double loss = 0;  // at the last validation; infinite if it diverged
  bool chosen = false;
};

class RaceResults {
 public:
  // `unfinished` says in the heading what is still missing; "" = nothing.
  RaceResults(const RaceRecipe& recipe, std::vector<RaceResult> results, std::vector<Candidate> candidates = {},
              std::string unfinished = "");

  // The results of one arm in one place (network and number of workers), over its seeds.
  struct Row {
    std::string arm;
    bool control = false;
    int workers = 1;
    double rate = 0;
    std::string second = "";
    size_t seeds = 0, diverged = 0;
    Interval tokens, seconds, bytes;   // to the target, over the seeds that reached it
    Interval convergence, throughput;  // speed-ups over one worker, computed seed by seed
    Interval loss;                     // cross-entropy at the last validation
    double baseline_loss = 0;          // one worker's loss with the same seeds; NaN if it diverged
    std::map<std::string, Interval> finals;
  };
  // Returns the single worker first, then the arms in the recipe's order; arms with one worker are listed for every number of workers.
  std::vector<Row> rows(const std::string& network, int workers, const RaceTarget& target) const;
  // Returns the numbers of workers above 1, ascending; only 1 if there are none.
  std::vector<int> worker_counts() const;
  // Returns the value to reach, or NaN if one worker's run with that seed is missing or diverged.
  double target_value(const RaceTarget& target, int64_t seed) const;

  // Returns the arm that reaches the first target soonest among those whose final loss is at most 1 % above one worker's, if any.
  std::optional<Row> recommended(const std::string& network, int workers) const;
  // Returns one line per network and number of workers; if the target is meaningless (experiments/target_check.h), the line gives the
  // reason instead of an arm.
  std::vector<std::string> recommendations() const;
  // Returns the arms that are not controls, best first. Arms that reach the first target in a larger share of their places come first, then
  // those with the least time relative to the fastest arm of each place (geometric mean), then those with the lowest loss.
  std::vector<std::string> ranking() const;

  std::string csv() const;         // one line per run, network and target
  std::string curves_csv() const;  // one line per validation
  std::string markdown() const;
  const std::vector<RaceResult>& results() const { return results_; }
  const std::string& unfinished() const { return unfinished_; }
  const RaceRecipe& recipe() const { return recipe_; }
  bool here(const RaceResult& r, const std::string& network, int workers) const;

 private:
  const RaceResult* baseline(int64_t seed) const;  // null if it is missing or diverged
  std::optional<Reached> reached(const RaceResult& r, const RaceTarget& target, double value) const;
  std::string target_line(const RaceTarget& target) const;
  std::string recommendation(const Row& best) const;
  std::string verdict(const std::string& network, int workers) const;
  // Whether every arm is a control, as in the rungs of a tuning: then only the final losses are compared.
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

// Describes a target: "cross-entropy 2.3", "cross-entropy of one worker at its end".
std::string target_text(const RaceTarget& target);

}  // namespace starling
