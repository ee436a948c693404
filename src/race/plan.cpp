#include "race/plan.h"

#include <algorithm>

namespace starling {

void RacePlan::count_ranks(const ModelVocabulary& vocabulary) {
  for (const RaceArm* arm : arms())
    for (const int64_t workers : arm->workers)
      ranks_[{arm->name, static_cast<int>(workers)}] =
          ranks_for_workers(race_config(r_, {arm, static_cast<int>(workers), r_.seeds.front(), arm->rates.front(), "", false}), vocabulary,
                            static_cast<int>(workers));
}

std::vector<const RaceArm*> RacePlan::arms() const {
  std::vector<const RaceArm*> all{&r_.baseline};
  for (const RaceArm& arm : r_.arms) all.push_back(&arm);
  return all;
}

const RaceArm& RacePlan::runner(const RaceArm& arm) const {
  for (const RaceArm& other : r_.arms)
    if (other.name == arm.trained_as) return other;
  return arm;
}

RaceRun RacePlan::trained(RaceRun run) const {
  run.arm = &runner(*run.arm);
  return run;
}

RaceRun RacePlan::first_run(const RaceArm& arm) const {
  const bool has = std::find(arm.workers.begin(), arm.workers.end(), r_.tuning_workers) != arm.workers.end();
  const int workers = static_cast<int>(has ? r_.tuning_workers : arm.workers.front());
  return {&arm,
          workers,
          r_.seeds.front(),
          arm.rates.front(),
          networks_of(arm, workers).front(),
          r_.screening_tokens > 0 && arm.rates.size() > 1};
}

std::vector<RaceRun> RacePlan::candidates(const RaceArm& arm) const {
  std::vector<RaceRun> runs;
  if (!arm.trained_as.empty()) return runs;
  for (const double rate : arm.rates) runs.push_back(first_run(arm)), runs.back().rate = rate;
  return runs;
}

std::vector<RaceRun> RacePlan::runs(const RaceArm& arm, int64_t seed, double rate) const {
  std::vector<RaceRun> all;
  for (const int64_t workers : arm.workers)
    for (const std::string& network : networks_of(arm, static_cast<int>(workers)))
      all.push_back({&arm, static_cast<int>(workers), seed, rate, network, false});
  return all;
}

std::vector<std::string> RacePlan::network_names() const {
  std::vector<std::string> names;
  for (const RaceNetwork& n : r_.networks) names.push_back(n.name);
  return names;
}

std::vector<std::string> RacePlan::networks_of(const RaceArm& arm, int workers) const {
  const RaceRanks its = ranks(arm, workers);
  if (its.count == 1 || !(arm.timed || its.alone)) return {""};
  return network_names();
}

std::vector<std::string> RacePlan::places_of(const RaceRun& run) const {
  if (ranks(*run.arm, run.workers).count == 1) return {""};
  return run.network.empty() ? network_names() : std::vector<std::string>{run.network};
}

}  // namespace starling
