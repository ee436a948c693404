// The directory of a race belongs to one process at a time: what another has made in it is never taken back, nor is what took long.
#include "experiments/race_directory.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "experiments/race.h"
#include "tests/experiments/fixture.h"
#include "tests/files/forwarding_files.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RaceDirectoryTest : public RaceTest {
 protected:
  // One arm, this many seeds and these lines more in the section race.
  RaceRecipe recipe(const std::string& seeds = "1", const std::string& more = "") const {
    write("recipe.yml", "race:\n  train: train.yml\n  output: " + path("race") + "\n  workers: [2]\n  seeds: [" + seeds +
                            "]\n  finalists: 1\n  tokens: 400\n  validate-every: 400\n  learning-rates: [0.003]\n" + more +
                            "  networks:\n    - {name: net, network: 10gbe}\n  arms:\n    - name: plain\n" + kTestCluster);
    return load_recipe(path("recipe.yml"));
  }
  static int run(const RaceRecipe& recipe) {
    RaceProgress progress;
    progress.say = [](const std::string&) {};
    return run_race(recipe, progress, 1);
  }
};

// While this process was about to lock the directory, another one ran the whole race in it.
class Overtaken : public ForwardingFiles {
 public:
  explicit Overtaken(std::string directory) : directory_(std::move(directory)) {}
  bool make_directory(const std::string& path) override {
    const bool made = ForwardingFiles::make_directory(path);
    if (path == directory_) fs::create_directories(directory_ + "/runs/one"), std::ofstream(directory_ + "/vocab.spm") << "theirs";
    return made;
  }

 private:
  std::string directory_;
};

TEST_F(RaceDirectoryTest, WhatAnotherRaceMadeBeforeTheLockIsNotTakenBack) {
  Overtaken files(path("race"));
  { const RaceDirectory directory(files, recipe()); }  // refused
  EXPECT_TRUE(fs::exists(path("race/runs/one")));
  EXPECT_EQ(read("race/vocab.spm"), "theirs");
  EXPECT_FALSE(fs::exists(path("race/replays")));
}

TEST_F(RaceDirectoryTest, OneProcessAtATime) {
  const auto files = real_file_system();
  const RaceRecipe one = recipe();
  const RaceDirectory first(*files, one);
  EXPECT_THROW(RaceDirectory(*files, one), ConfigError);
  EXPECT_TRUE(fs::exists(path("race/runs")) && fs::exists(path("race/lock")));
}

// A vocabulary of an earlier version has another rule than the default of today; a rule that is given is meant.
TEST_F(RaceDirectoryTest, ARaceGoesOnWithTheRuleOfItsVocabulary) {
  EXPECT_EQ(run(recipe("1", "  vocab.normalization: nmt_nfkc\n")), 0);
  const std::string records = read("race/records.json");
  EXPECT_EQ(run(recipe("1, 2")), 0);
  const std::string more = read("race/records.json");
  EXPECT_GT(more.size(), records.size());
  for (const auto& entry : fs::directory_iterator(path("race/runs")))
    EXPECT_THAT(read("race/runs/" + entry.path().filename().string() + "/config.yml"), HasSubstr("  normalization: nmt_nfkc ")) << entry;
  try {
    run(recipe("1, 2", "  vocab.normalization: nfkc\n"));
    ADD_FAILURE() << "another rule than the vocabulary's";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("vocab.normalization is nfkc, but " + path("race/vocab.spm") +
                                    " was made with vocab.normalization nmt_nfkc, and stays as it is"));
  }
  EXPECT_EQ(read("race/records.json"), more);
}

}  // namespace
}  // namespace starling
