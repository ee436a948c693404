// Saves the checkpoints of a run (model, per-rank state, position in the data, validations) and resumes from them. Rank 0 manages the
// files.
#pragma once

#include <deque>
#include <utility>

#include "decode/model_directory.h"
#include "run/run_guard.h"
#include "run/run_parts.h"
#include "run/validation_loop.h"
#include "saving/copies.h"
#include "saving/rank_state.h"
#include "storage/checkpoint.h"
#include "storage/state.h"

namespace starling {

class RunCheckpoints {
 public:
  // The references must outlive this. beside_training: whether checkpoints may be written while training goes on.
  RunCheckpoints(RunParts& run, RunStatus& status, ValidationLoop& validations, ActionsByTime& by_time, RunGuard& guard,
                 bool beside_training);
  ~RunCheckpoints();

  // Resumes from the checkpoint in the run directory, if there is one. Collective.
  void resume();
  // Begins to take the memory that checkpoints beside training will need, as it was planned.
  void prepare();
  // Saves the run as it is, or begins to: then advance() ends it. Collective as RunDriver says. If that fails, training goes on with a
  // warning, and the next try is due after a tenth of the usual distance, and after each failure twice as long, at most the usual distance;
  // where this is the run's `last` checkpoint, it is complete on return, or IoError is thrown.
  void save(bool last);
  // After an update: goes on with a checkpoint that is written beside training. wait: until it is complete or has failed. Collective.
  void advance(bool wait);
  bool under_way() const { return under_way_ != nullptr; }
  // Whether a checkpoint that could not be saved is due again after this update.
  bool due_again() const;
  // Whether the newest checkpoint is of this update and nothing has changed since.
  bool current() const { return saved_ == run_.step(); }
  void outdated() { saved_ = -1, current_ = false; }
  // The run has gone back. Returns whether there are checkpoints of later updates; the next one that is saved removes them.
  bool went_back();

 private:
  struct UnderWay;
  void tell_failure(const std::string& complaint, int64_t step, bool last);
  void finish_before(bool last);
  void complete(const UnderWay& saved);
  void remove_later();
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
  RunGuard& guard_;
  const bool beside_training_;
  int64_t saved_ = -1;                                     // update of the newest checkpoint, if nothing has changed since
  int64_t newest_ = -1;                                    // update of the newest checkpoint; -1: none
  bool current_ = true;                                    // nothing has changed since the save under way began
  bool later_ = false;                                     // there are checkpoints of updates from which the run has gone back
  int64_t again_ = 0;                                      // update after which to try again; 0: the last try succeeded
  int64_t wait_ = 0;                                       // updates before that; longer after each failure
  std::deque<std::pair<int64_t, int64_t>> saved_windows_;  // of a stream: of the newest checkpoints, update and first window needed
  std::optional<Copies> copies_;
  std::unique_ptr<UnderWay> under_way_;
};

}  // namespace starling
