// The guard against divergence in a run: what it needs of the run, and what it says (guard/guard.h).
#pragma once

#include <optional>

#include "base/error.h"
#include "guard/guard.h"
#include "guard/snapshot.h"
#include "run/run_parts.h"

namespace starling {

class RunGuard {
 public:
  // The run must outlive this.
  explicit RunGuard(RunParts& run) : run_(run) {}

  // Called when the replica and its data are there; then restore() or nothing, then begin().
  void set_up();
  void restore(const State& state);
  // Before the first update of this process. Collective.
  void begin();
  // After an update. Returns whether the run went back; it is then where it was after an earlier update, but further on in its data.
  // Collective. Throws DivergedError when nothing more is to be tried.
  bool updated(const StepResult& result);
  // After a step that had a loss or gradient that is not finite. Throws DivergedError if the run cannot go back. Collective.
  void not_finite(const DivergedError& error);
  bool acts() const { return guard_ && guard_->acts(); }
  void saved() {
    if (guard_) guard_->saved(run_.step());
  }
  void save(State& state) const {
    if (guard_) guard_->save(state);
  }

 private:
  void tell(const Guard::Verdict& verdict, int64_t from);

  RunParts& run_;
  std::optional<ReplicaSnapshot> snapshot_;
  std::optional<Guard> guard_;
};

}  // namespace starling
