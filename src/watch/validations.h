// The validations of a run: the newest ones, as numbers, so that they stay small whatever a record holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace starling {

class Validations {
 public:
  static constexpr size_t kMost = 2000;       // validations; the best one is never dropped
  static constexpr size_t kMostByText = 300;  // of which the scores of each text are told, the newest ones
  static constexpr size_t kMostMetrics = 16;
  static constexpr size_t kMostNames = 256;  // scores of one validation: metrics, and metrics of each text

  // Adds what a record of a validation says; it must have a number "step" and an object "scores".
  void add(const nlohmann::json& record);
  // Forgets validations after an update.
  void forget_after(int64_t step);

  struct Score {
    std::string text, metric;  // text: "en:de valid.en"; "" for the whole, or the mean of several texts
    double value;
  };
  // Returns the scores of the newest validation.
  std::vector<Score> newest() const;
  // Returns {"metric", "points": [{"step", "scores", "best", "seconds"}]} and, of several texts, "by_text": {"step": [...], "texts":
  // {"en:de valid.en": {"bleu": [...]}}} with null where a validation has no such score.
  nlohmann::json json() const;

 private:
  struct Name {
    std::string text, metric;
  };
  struct Point {
    int64_t step;
    bool best;
    double seconds;
    std::vector<double> scores;  // by the number of their name; NaN: none
  };
  void add_scores(Point& point, const std::string& text, const nlohmann::json& scores);

  std::string metric_;
  std::vector<Name> names_;
  size_t metrics_ = 0;  // of these names, those of the whole
  std::deque<Point> points_;
};

}  // namespace starling
