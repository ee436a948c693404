// Decides which runs a race consists of: arms with their workers, rates and networks, and which arm's runs an arm reuses.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "experiments/times.h"

namespace starling {

class RacePlan {
 public:
  explicit RacePlan(const RaceRecipe& recipe) : r_(recipe) {}
  // Computes what ranks() returns, from the vocabulary.
  void count_ranks(const ModelVocabulary& vocabulary);
  RaceRanks ranks(const RaceArm& arm, int workers) const { return ranks_.at({arm.name, workers}); }

  std::vector<const RaceArm*> arms() const;  // the baseline first
  // Returns the arm whose runs this arm uses: itself, or the arm that trained-as names.
  const RaceArm& runner(const RaceArm& arm) const;
  // Returns the run that is trained in place of this one.
  RaceRun trained(RaceRun run) const;
  // Returns the numbers of workers at which an arm's candidates are compared; none for an arm without runs of its own.
  std::vector<int> tuned_at(const RaceArm& arm) const;
  // Returns the number of workers whose choice applies to `workers` workers.
  int tuned_for(const RaceArm& arm, int workers) const;
  // Returns all candidates, as whole runs or as runs of the first rung.
  std::vector<RaceRun> candidates(const RaceArm& arm, int workers) const;
  // Returns how many candidates advance to the next rung; 0: so few are left that the best of them is chosen.
  size_t next_rung(size_t candidates, int rung) const;
  // Returns the arm's runs with the choices for their numbers of workers, and omits those for which nothing has been chosen yet.
  using Chosen = std::function<std::optional<RaceChoice>(const RaceArm& arm, int workers)>;
  std::vector<RaceRun> runs(const RaceArm& arm, int64_t seed, const Chosen& chosen) const;
  // Returns the networks that the arm is trained for one by one; "" = one run for all networks.
  std::vector<std::string> networks_of(const RaceArm& arm, int workers) const;
  // Returns the networks for which the run has results; "" = none, because it is a single rank.
  std::vector<std::string> places_of(const RaceRun& run) const;

 private:
  std::vector<std::string> network_names() const;
  const RaceRecipe& r_;
  std::map<std::pair<std::string, int>, RaceRanks> ranks_;  // by arm and workers
};

}  // namespace starling
