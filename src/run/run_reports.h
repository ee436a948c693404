// Reports on a run: its start, a line every few updates, how the ranks communicated, and a summary at the end. Rank 0 writes; the other
// ranks contribute their numbers.
#pragma once

#include <cstdint>

#include "run/run_parts.h"

namespace starling {

class RunReports {
 public:
  // The arguments must outlive this.
  RunReports(RunParts& run, const RunStatus& status) : run_(run), status_(status) {}

  // Reports model, objective, learning rates and ranks, and warns of settings that are rarely intended. Collective.
  void announce();
  // Called before each update; reports the first one by SGD.
  void announce_sgd();

  // Training begins: time and traffic count from here.
  void begin();
  // Adds an update that was made.
  void add(const StepResult& result);
  // Reports if the batch has grown. before: its factor before the update.
  void tell_growth(int64_t before);
  // Takes so many seconds, which were not training, out of the time since the last report.
  void pause(double seconds) { paused_ += seconds; }
  // Writes the line for the updates since the last report, and how the ranks communicated; nothing if no sums have been exchanged since
  // then. Collective where RunDriver is synchronous.
  void report();
  // Called when this rank makes no further update: it leaves the others, and rank 0 writes the strategy's report on the run.
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

  RunParts& run_;
  const RunStatus& status_;
  StepSums window_;  // of the updates since the last report
  StepResult last_;
  double begun_ = 0;   // start of the window by the world's clock, s
  double paused_ = 0;  // validation and checkpoints since then, s
  Traffic reported_;
  int64_t updates_ = 0;       // made since then
  double reported_loss_ = 0;  // of the last line, shown while no sums have been exchanged since
};

}  // namespace starling
