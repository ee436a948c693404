// Which runs a race has: arms with their workers, rates and networks, and whose runs an arm's are.
#pragma once

#include <map>

#include "race/times.h"

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
  RaceRun first_run(const RaceArm& arm) const;
  // Those that the learning rate is chosen by; none of an arm that has no runs of its own.
  std::vector<RaceRun> candidates(const RaceArm& arm) const;
  // The arm's runs with the rate.
  std::vector<RaceRun> runs(const RaceArm& arm, int64_t seed, double rate) const;
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
