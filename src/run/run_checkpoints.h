// Saves the checkpoints of a run (model, per-rank state, position in the data, validations) and resumes from them. Rank 0 manages the
// files.
#pragma once

#include <deque>
#include <utility>

#include "decode/model_directory.h"
#include "run/rank_state.h"
#include "run/run_parts.h"
#include "run/validation_loop.h"
#include "storage/checkpoint.h"
#include "storage/state.h"

namespace starling {

class RunCheckpoints {
 public:
  // The arguments must outlive this.
  RunCheckpoints(RunParts& run, RunStatus& status, ValidationLoop& validations, ActionsByTime& by_time)
      : run_(run), status_(status), validations_(validations), by_time_(by_time) {}

  // Resumes from the checkpoint in the run directory, if there is one. Collective.
  void resume();
  // Saves the run as it is. Collective as RunDriver says.
  void save();
  // Whether the newest checkpoint is of this update and nothing has changed since.
  bool current() const { return saved_ == run_.step(); }
  void outdated() { saved_ = -1; }

 private:
  std::vector<Part> parts_of_first(const FetchWeights& fetch) const;
  std::optional<Loaded> checkpoint() const;
  bool same_parts(const State& state) const;
  State state() const;
  void load(const Loaded& loaded, const RankCheckpoints& saved);
  void restore(const State& state);
  void tell_other_schedule(const State& state);
  bool resume_own(RankState& ranks, const RankCheckpoints* saved, const State& state);

  RunParts& run_;
  RunStatus& status_;
  ValidationLoop& validations_;
  ActionsByTime& by_time_;
  int64_t saved_ = -1;                                     // update of the newest checkpoint
  std::deque<std::pair<int64_t, int64_t>> saved_windows_;  // of a stream: of the newest checkpoints, update and first window needed
};

}  // namespace starling
