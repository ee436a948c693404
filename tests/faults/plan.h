// The faults of a run and of its restarts, drawn from one seed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "sim/scenario.h"
#include "tests/faults/layouts.h"
#include "tests/files/memory_files.h"

namespace starling {

// One start of the run, until it has ended or failed.
struct Attempt {
  Scenario scenario;      // its ranks may be others than the layout's
  FaultPlan disk;         // of the directory of checkpoints
  int64_t stop_at = 0;    // the update after which it is told to stop; 0: never
  int apart = -1;         // a rank that does not see the directory of the others
  bool power = false;     // afterwards the machine starts again, and has lost what was not synced
  bool corrupts = false;  // afterwards a byte of the newest checkpoint is another, if there are two
};

// What an undisturbed run takes: what is drawn is scaled by it.
struct Extent {
  double seconds = 0;                 // virtual
  int64_t disk_operations = 0;        // on the checkpoints
  std::vector<int64_t> disk_changes;  // those of them between updates 7 and 10 that change something
  uint64_t disk_bytes = 0;            // that they take in the end
  int64_t updates = 0;
  std::vector<double> update_ends;  // virtual seconds at which each reported update was over
};

std::vector<Attempt> draw_attempts(uint64_t seed, const Layout& layout, const Extent& extent);

// Starts that are killed once each: at the end of each update one of the ranks after the other, and at each operation of disk_changes the
// whole run, once where the machine goes on and once where its power fails. In these updates a best model takes the place of another, and
// a checkpoint is saved and an old one removed.
struct Kill {
  enum Where : uint8_t { update, program, power } where;
  Attempt attempt;
};
std::vector<Kill> all_kills(const Layout& layout, const Extent& extent);

constexpr double kDeadlineSeconds = 30;  // virtual, after which a rank counts as lost
constexpr double kLongestCut = 10;       // of a network that is whole again in time

}  // namespace starling
