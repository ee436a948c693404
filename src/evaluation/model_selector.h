// Selects the best model from validation scores, decides early stopping, and warns about suspicious metrics. A metric that never changes
// (such as a BLEU of 0 where the tokenizer finds no words) must neither end a run nor keep an untrained model as the best, so ties in the
// deciding metric are broken by the next ones of valid.metrics, and early stopping waits for all of them. Nothing here trains or saves.
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

// Returns whether a is better than b under a metric of valid.metrics; a score that is not finite is worse than any that is.
bool better_score(const std::string& metric, double a, double b);

// Rank 0 has one for the whole run; its state is part of every checkpoint.
class ModelSelector {
 public:
  // The metrics of a run, the one of them that decides, and after how many validations without improvement to stop (0: never).
  ModelSelector(const std::vector<std::string>& metrics, const std::string& deciding, int64_t patience);

  struct Verdict {
    bool best = false;                  // the model just validated is the best so far
    std::string by;                     // the metric that decided; "": none did, and it is the latest of equals
    std::vector<std::string> messages;  // lines for people: constant metrics, and why the run does not stop
  };
  // Takes the scores of the validation after an update, in any order. Metrics without a score do not count this time; without one of the
  // deciding metric the whole validation does not.
  Verdict consider(int64_t step, const std::vector<std::pair<std::string, double>>& scores);

  // Returns whether to stop: no metric has improved within the patience, and the deciding one did change.
  bool stops() const;
  bool has_best() const { return best_step_ >= 0; }
  double best() const { return tracks_.front().at_best; }  // score of the deciding metric
  int64_t best_step() const { return best_step_; }
  // Returns the best model's score in a metric; NaN if there is none.
  double score_of_best(const std::string& metric) const;
  // Returns "best bleu 31.2 at update 400", and which metric decided if bleu was equal.
  std::string summary() const;
  // If cross-entropy decided and a later model translates better by a point or more, returns what to set; otherwise "". On a small text
  // that is memorised, BLEU continues to rise after cross-entropy has begun to rise.
  std::string advice() const;
  int64_t stalled() const { return stalled_; }  // validations since the best one

  void save(State& state) const;
  // Restores from a checkpoint, even of a version that recorded only the deciding metric. Scores are dropped if the deciding metric differs
  // from this run's (the next validation is then the best), and so are those of metrics that are now `measured_otherwise` (another
  // tokenizer).
  void restore(const State& state, std::span<const std::string> measured_otherwise = {});

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct Track {
    std::string metric;
    double at_best = kNone;  // score of the best model
    double top = kNone;      // best score of any model
    int64_t top_step = -1;   // the update of `top`; -1: unknown, as in checkpoints of older versions
    double last = kNone;
    int64_t since = 0;     // validations since `top`
    int64_t repeated = 0;  // validations in a row with exactly the score `last`
  };

  // Returns the metric that makes the last model the best, or "" if all are equal; nullopt if it is not the best.
  std::optional<std::string> best_by() const;
  // Returns whether the deciding metric has not changed since the best model.
  bool constant() const;
  void warn(std::vector<std::string>& messages) const;

  std::string best_by_;        // of the best model
  std::vector<Track> tracks_;  // the deciding metric, then the others in their order
  int64_t patience_, best_step_ = -1, stalled_ = 0, validations_ = 0;
};

}  // namespace starling
