// Which runs a race has: arms with their workers, rates and networks, and whose runs an arm's are.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "experiments/times.h"

namespace starling {

class RacePlan {
 public:
  explicit RacePlan(const RaceRecipe& recipe) : r_(recipe) {}
  // What ranks() answers follows from the vocabularies.
  void count_ranks(const ModelVocabulary& vocabulary);
  RaceRanks ranks(const RaceArm& arm, int workers) const { return ranks_.at({arm.name, workers}); }

  std::vector<const RaceArm*> arms() const;  // the baseline first
  // The arm whose runs this one's are.
  const RaceArm& runner(const RaceArm& arm) const;
  // The run that is trained for this one.
  RaceRun trained(RaceRun run) const;
  // The numbers of workers that an arm's candidates are compared at; none of an arm that has no runs of its own.
  std::vector<int> tuned_at(const RaceArm& arm) const;
  // That of them whose choice counts for so many workers.
  int tuned_for(const RaceArm& arm, int workers) const;
  // All candidates, as whole runs or of the first rung.
  std::vector<RaceRun> candidates(const RaceArm& arm, int workers) const;
  // How many go on to the next rung; 0: so few are left that the best of them is chosen.
  size_t next_rung(size_t candidates, int rung) const;
  // The arm's runs, with what is chosen for their number of workers; without those that nothing is chosen for yet.
  using Chosen = std::function<std::optional<RaceChoice>(const RaceArm& arm, int workers)>;
  std::vector<RaceRun> runs(const RaceArm& arm, int64_t seed, const Chosen& chosen) const;
  // The networks that runs of the arm are for: "" = any.
  std::vector<std::string> networks_of(const RaceArm& arm, int workers) const;
  // The networks that results of the run are for: "" = it has none, being a single rank.
  std::vector<std::string> places_of(const RaceRun& run) const;

 private:
  std::vector<std::string> network_names() const;
  const RaceRecipe& r_;
  std::map<std::pair<std::string, int>, RaceRanks> ranks_;  // by arm and workers
};

}  // namespace starling
