// What a run tells about itself: how it begins, one line for so many updates, how ranks communicated, how it was. Rank 0 has the words; the
// other ranks give their numbers.
#pragma once

#include <cstdint>

#include "run/run_parts.h"

namespace starling {

class RunReports {
 public:
  // They must live as long as this.
  RunReports(RunParts& run, const RunStatus& status) : run_(run), status_(status) {}

  // Model, objective, rates, ranks, and settings that may be meant, but rarely are. Collective.
  void announce();
  // Before an update: the first one of SGD says so.
  void announce_sgd();

  // Training begins: time and traffic count from here.
  void begin();
  // An update was made.
  void add(const StepResult& result);
  // Says so if the batch has grown; before: its factor before the update.
  void tell_growth(int64_t before);
  // So many seconds since the last report were no training.
  void pause(double seconds) { paused_ += seconds; }
  // The line of the updates since the last report, and how ranks communicated, unless no sums have been exchanged since then. Collective.
  void report();
  // This rank makes no further update: it leaves the others, and rank 0 says what the strategy has to tell of the run.
  void end();

 private:
  void announce_ranks(nlohmann::ordered_json& event);
  int64_t computed_at_once() const;
  void announce_stages();
  void announce_choices();
  void announce_unknown();
  void warn();
  TrainReport make_report() const;
  void report_communication();
  void report_noise();

  // Sums over the updates since the last report.
  struct Window {
    double loss = 0, clipped = 0, clippable = 0, reward = 0, samples = 0, distinct = 0, consistency = 0;
    int64_t target = 0, source = 0, sentences = 0;
  };

  RunParts& run_;
  const RunStatus& status_;
  Window window_;
  StepResult last_;
  double begun_ = 0;   // of the window, by the world's clock, s
  double paused_ = 0;  // validation and checkpoints since then, s
  Traffic reported_;
  int64_t reported_step_ = 0;
  double reported_loss_ = 0;  // of the last line, shown while no sums have been exchanged since
};

}  // namespace starling
