// Decides what to do about a run that diverges or does not learn (section guard; docs/explanation/guard.md). It goes back to a snapshot,
// skips the batches that came after it, and lowers the learning rate if that did not help. Pure arithmetic on the numbers of updates: equal
// on all ranks, and repeatable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "guard/loss_watch.h"
#include "guard/options.h"

namespace starling {

class Guard {
 public:
  // What the guard needs of the run: keep a snapshot of it as it is, and go back to the one that was kept.
  struct Run {
    std::function<void()> keep;
    std::function<void()> go_back;
  };
  Guard(const GuardConfig& config, LossWatch watch, Run run) : config_(config), watch_(watch), kept_watch_(watch), run_(std::move(run)) {}

  // Called before the first update of this process, with the updates done. From here on it may go back most_rescues times.
  void begin(int64_t step);
  struct Verdict {
    bool went_back = false;  // the run is now where it was after update `to`
    int64_t to = 0;
    std::string text;  // a line for the log, or ""
  };
  // Takes the numbers of an update, as LossWatch::add does. Throws DivergedError when nothing more is to be tried.
  Verdict updated(int64_t step, double loss, double gradient_norm);
  // Takes an update whose loss or gradient was not finite: it has changed nothing. Throws DivergedError if the run cannot go back.
  Verdict not_finite(int64_t step, const std::string& why);
  // Called after the state of a checkpoint was taken, from which a resumed run would begin.
  void saved(int64_t step);
  // Returns the factor on the learning rate of an update.
  double rate_factor(int64_t step) const;
  bool acts() const { return config_.mode == GuardMode::act; }
  int64_t rescues() const { return rescues_; }

  void save(State& state) const;
  void restore(const State& state);

  static constexpr int64_t kSoon = 200;         // updates after a return in which the rate is at fault if the loss rises again
  static constexpr int64_t kRewarm = 100;       // updates in which a lowered rate rises from 0
  static constexpr int64_t kMostSkipped = 500;  // batches in a row that may be at fault
  static constexpr double kLower = 0.5, kLowerStalled = 0.25;

 private:
  void keep(int64_t step);
  Verdict rescue(int64_t step, Learning how, const std::string& why);
  Verdict skip(const std::string& why);
  Verdict go_back(const std::string& text);

  GuardConfig config_;
  LossWatch watch_, kept_watch_;
  Run run_;
  int64_t kept_step_ = 0;
  bool told_ = false;     // of the present rise, in mode warn
  bool probing_ = false;  // the next update is the first one after a return
  int64_t rescues_ = 0, skipped_ = 0;
  int64_t returned_to_ = -1;  // the update to which the run last went back; -1: never
  int64_t rewarm_from_ = -1;  // the update from which a lowered rate rises; -1: it was not lowered
  double factor_ = 1;
};

}  // namespace starling
