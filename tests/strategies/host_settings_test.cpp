// Hosts with disks of their own: what the configuration leaves open is as rank 0 finds it, not as each host does.
#include "sim/simulate.h"
#include "tests/run/word_run.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

class HostSettings : public WordRunTest {
 protected:
  // Two ranks with these settings beside those of every test; rank 1 has another disk.
  std::vector<std::vector<std::string>> lines(const std::vector<Override>& of_0, const std::vector<Override>& of_1) const {
    std::vector<std::vector<std::string>> all(2);
    Scenario scenario;
    scenario.ranks = 2;
    simulate(scenario, [&](World& world) {
      const auto rank = static_cast<size_t>(world.comm->rank());
      std::vector<Override> mine = given("", rank == 0 ? of_0 : of_1);
      std::erase_if(
          mine, [](const Override& o) { return o.first.starts_with("model.") || (o.first == "train.output" && o.second.ends_with("/")); });
      all[rank] = config_lines(load_run_config("", mine, *world.comm));
      std::erase_if(all[rank],
                    [](const std::string& line) { return line.starts_with("train.output:") || line.starts_with("train.initial-model:"); });
    });
    return all;
  }
};

TEST_F(HostSettings, WhatIsLeftOpenIsAsRank0FindsIt) {
  EXPECT_EQ(run_training(config("run", {{"vocab.normalization", "nmt_nfkc"}, {"vocab.sample-lines", "50"}})), 0);
  // A run that goes on, and one that begins with its model.
  const auto on = lines({{"train.output", path("run")}}, {{"train.output", path("elsewhere")}});
  EXPECT_THAT(on[0], testing::IsSupersetOf({"vocab.normalization: nmt_nfkc", "vocab.sample-lines: 50"}));
  EXPECT_EQ(on[0], on[1]);
  const auto tuned = lines({{"train.output", path("tuned")}, {"train.initial-model", path("run")}},
                           {{"train.output", path("tuned")}, {"train.initial-model", path("not/here")}});
  EXPECT_THAT(tuned[0], testing::IsSupersetOf({"model.width: 16", "model.preset: transformer-tiny", "vocab.normalization: nmt_nfkc"}));
  EXPECT_EQ(tuned[0], tuned[1]);
  // What a host's own file says counts, so that a difference is found.
  const auto other = lines({{"train.output", path("run")}}, {{"train.output", path("elsewhere")}, {"vocab.size", "50"}});
  EXPECT_THAT(other[1], testing::Contains("vocab.size: 50"));
}

}  // namespace
}  // namespace starling
