// Section guard of the configuration.
#pragma once

#include <array>
#include <cstdint>

#include "config/words.h"

namespace starling {

enum class GuardMode : uint8_t { off, warn, act };
constexpr auto words(GuardMode) { return std::array{"off", "warn", "act"}; }

struct GuardConfig {
  GuardMode mode = GuardMode::warn;
  int64_t snapshot_every = 100;  // updates
  int64_t most_rescues = 8;
};
template <class Visitor>
void visit(Visitor& v, GuardConfig& c) {
  v.choice(
      "mode", c.mode,
      "what happens when the loss diverges, or stays that of guessing tokens by frequency: off; warn = a line in the log; act = the run "
      "goes back to a snapshot in memory, skips the batches since then and, if that does not help, lowers its learning rate "
      "(docs/explanation/guard.md)");
  v.field("snapshot-every", c.snapshot_every, "updates between two snapshots; each takes as much memory as a checkpoint", 1, 1000000)
      .needs("guard.mode", {GuardMode::act});
  v.field("most-rescues", c.most_rescues, "how often a run goes back before it ends with an error", 1, 1000)
      .needs("guard.mode", {GuardMode::act});
}

}  // namespace starling
