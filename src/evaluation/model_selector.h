// What a run thinks of its validations: which model is the best so far, whether to stop early, and what to warn about. A metric that
// never changes (BLEU of 0 where words cannot be told apart) must neither end a run nor keep an untrained model as the best, so a tie in
// the deciding metric is left to the next ones of valid.metrics, and early stopping waits for all of them. Nothing here trains or saves.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/state.h"

namespace starling {

// Whether a is better than b under a metric of valid.metrics; a number that is not finite is worse than every other.
bool better_score(const std::string& metric, double a, double b);

// Rank 0's, for the whole run: its state is part of every checkpoint.
class ModelSelector {
 public:
  // The metrics of a run, the one of them that decides, and after how many validations without improvement to stop (0: never).
  ModelSelector(const std::vector<std::string>& metrics, const std::string& deciding, int64_t patience);

  struct Verdict {
    bool best = false;                  // the model just validated is the best so far
    std::string by;                     // the metric that says so; "": none does, and it is the latest of equals
    std::vector<std::string> messages;  // lines for people: constant metrics, and why the run does not stop
  };
  // Takes up the scores of the validation after an update, in any order; metrics without a score count as not improved.
  Verdict consider(int64_t step, const std::vector<std::pair<std::string, double>>& scores);

  // Patience is over: no metric has improved within it, and the deciding one did change.
  bool stops() const;
  bool has_best() const { return best_step_ >= 0; }
  double best() const { return tracks_.front().at_best; }  // score of the deciding metric
  int64_t best_step() const { return best_step_; }
  // A metric's score of the best model; NaN if there is none.
  double score_of_best(const std::string& metric) const;
  // "best bleu 31.2 at update 400", and which metric decided if bleu was equal.
  std::string summary() const;
  // Where cross-entropy decided, what to set if a later model translates better by a point or more, else "": of a small text that is
  // learned by heart BLEU goes on rising after cross-entropy has begun to.
  std::string advice() const;
  int64_t stalled() const { return stalled_; }  // validations since the best one

  void save(State& state) const;
  // From a checkpoint, also of a version that knew the deciding metric only. Scores of another deciding metric than this run's are dropped:
  // the next validation is the best again. So are those of metrics that are `measured_otherwise` since then (another tokenizer).
  void restore(const State& state, std::span<const std::string> measured_otherwise = {});

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct Track {
    std::string metric;
    double at_best = kNone;  // score of the best model
    double top = kNone;      // best score of any model
    int64_t top_step = -1;   // the update of that; -1: unknown, as in checkpoints of older versions
    double last = kNone;
    int64_t since = 0;     // validations since `top`
    int64_t repeated = 0;  // validations in a row with exactly the score `last`
  };

  // The metric that makes the last model the best, "" if none speaks against it; nothing if it is not the best.
  std::optional<std::string> best_by() const;
  // All scores of the deciding metric since the best model, its own included, are the same.
  bool constant() const;
  void warn(std::vector<std::string>& messages) const;

  std::string best_by_;        // of the best model
  std::vector<Track> tracks_;  // the deciding metric, then the others in their order
  int64_t patience_, best_step_ = -1, stalled_ = 0, validations_ = 0;
};

}  // namespace starling
