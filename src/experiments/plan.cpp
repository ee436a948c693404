#include "experiments/plan.h"

#include <algorithm>

#include "base/error.h"

namespace starling {

void RacePlan::count_ranks(const ModelVocabulary& vocabulary) {
  for (const RaceArm* arm : arms())
    for (const int64_t count : arm->workers) {
      const int workers = static_cast<int>(count);
      const auto of = [&](const std::string& second) {
        return ranks_for_workers(race_config(r_, {arm, workers, r_.seeds.front(), arm->rates.front(), "", 0, second}), vocabulary, workers);
      };
      const RaceRanks ranks = ranks_[{arm->name, workers}] = of(arm->seconds.empty() ? "" : arm->seconds.front());
      for (const std::string& second : arm->seconds)
        if (const RaceRanks other = of(second); other.count != ranks.count || other.asynchronous != ranks.asynchronous)
          throw ConfigError(fmt::format("{}: arm {}: {} {} needs other ranks than {}; give each an arm of its own", r_.file, arm->name,
                                        r_.second_key, second, arm->seconds.front()));
    }
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

std::vector<int> RacePlan::tuned_at(const RaceArm& arm) const {
  if (!arm.trained_as.empty()) return {};
  if (r_.tune_each) return {arm.workers.begin(), arm.workers.end()};
  const bool has = std::find(arm.workers.begin(), arm.workers.end(), r_.tuning_workers) != arm.workers.end();
  return {static_cast<int>(has ? r_.tuning_workers : arm.workers.front())};
}

int RacePlan::tuned_for(const RaceArm& arm, int workers) const { return r_.tune_each ? workers : tuned_at(runner(arm)).front(); }

std::vector<RaceRun> RacePlan::candidates(const RaceArm& arm, int workers) const {
  std::vector<RaceRun> runs;
  const std::vector<std::string> seconds = arm.seconds.empty() ? std::vector<std::string>{""} : arm.seconds;
  const bool trials = r_.screening_tokens > 0 && arm.rates.size() * seconds.size() > 1;
  for (const std::string& second : seconds)
    for (const double rate : arm.rates)
      runs.push_back({&arm, workers, r_.seeds.front(), rate, networks_of(arm, workers).front(), trials ? 1 : 0, second});
  return runs;
}

size_t RacePlan::next_rung(size_t candidates, int rung) const {
  const size_t left = (candidates + 2) / 3;
  return rung > 0 && rung < r_.screening_rungs && left > 1 ? left : 0;
}

std::vector<RaceRun> RacePlan::runs(const RaceArm& arm, int64_t seed, const Chosen& chosen) const {
  std::vector<RaceRun> all;
  for (const int64_t count : arm.workers) {
    const int workers = static_cast<int>(count);
    const std::optional<RaceChoice> choice = chosen(arm, workers);
    if (!choice) continue;
    for (const std::string& network : networks_of(arm, workers))
      all.push_back({&arm, workers, seed, choice->rate, network, 0, choice->second});
  }
  return all;
}

std::vector<std::string> RacePlan::network_names() const {
  std::vector<std::string> names;
  for (const RaceNetwork& n : r_.networks) names.push_back(n.name);
  return names;
}

std::vector<std::string> RacePlan::networks_of(const RaceArm& arm, int workers) const {
  const RaceRanks its = ranks(arm, workers);
  if (its.count == 1 || !(arm.timed || its.asynchronous)) return {""};
  return network_names();
}

std::vector<std::string> RacePlan::places_of(const RaceRun& run) const {
  if (ranks(*run.arm, run.workers).count == 1) return {""};
  return run.network.empty() ? network_names() : std::vector<std::string>{run.network};
}

}  // namespace starling
