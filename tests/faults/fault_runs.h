// A run with the faults that a seed draws for it. It is started again after each failure, and is then compared with an undisturbed run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/plan.h"

namespace starling {

struct UpdateReport {
  int64_t target_tokens = 0;
  double loss = 0;
  int64_t epoch = 0, sentences = 0;
};

// What a run has reported and left.
struct Outcome {
  std::map<int64_t, UpdateReport> reports;   // by update
  std::map<std::string, std::string> files;  // SHA-256 of the last checkpoint's model and shards, and of the best model
  std::vector<std::string> names;            // in the run directory
  std::vector<int64_t> begins;               // of each start that made an update, the first one
};

// What happened, and what was wrong.
struct FaultRun {
  std::map<std::string, int64_t> happened;  // by kind of fault
  int64_t attempts = 0, updates = 0;
  std::vector<std::string> wrong;  // invariants that did not hold; empty: all did
};

class FaultRuns {
 public:
  FaultRuns();
  ~FaultRuns();
  FaultRuns(const FaultRuns&) = delete;

  bool shows_logs = false;  // on standard output
  // The layout of a seed takes its turn with the others.
  FaultRun run(uint64_t seed);
  // The run with these starts, and then a quiet one. seed: of what is damaged between them.
  FaultRun run(const Layout& layout, const std::vector<Attempt>& attempts, uint64_t seed = 0);
  // What an undisturbed run of the layout reports; it is made once.
  const Outcome& undisturbed(const Layout& layout);
  Extent extent(const Layout& layout);
  struct Leg {
    Layout layout;
    int64_t until;  // the update after which it stops, but for the last leg
  };
  // A run that one layout begins and others continue, undisturbed.
  Outcome relay(const std::vector<Leg>& legs);
  // What is wrong with undisturbed runs: those of several workers against the one of one, tokens against the text.
  std::vector<std::string> wrong_undisturbed();

 private:
  struct Undisturbed;
  struct Running;
  class Trial;
  const Undisturbed& reference(const Layout& layout);
  Config config(const Layout& layout, const std::string& run) const;
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::filesystem::path directory_;
  std::map<std::string, Undisturbed> references_;
};

}  // namespace starling
