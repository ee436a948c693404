// `starling race` as users call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/directory_hash.h"
#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;

class RaceVerbTest : public CalledTest {
 protected:
  RaceVerbTest() {
    write_counting();
    write("c.yml",
          "data: {source: a, target: b}\nvalid: {source: a, target: b}\nvocab: {size: 40}\n"
          "model: {preset: transformer-tiny, width: 32, feed-forward: 64}\n"
          "train: {batch-tokens: 200, precision: f32}\n");
    write("race.yml",
          "race:\n  train: c.yml\n  workers: [2]\n  tokens: 800\n  validate-every: 400\n"
          "  arms:\n    - name: plain\n      strategy.wire: bf16\n"
          "cluster: {forward-gflops: 1, backward-gflops: 1, update-gb-s: 5, memory-gb-s: 5}\n");
  }
  ShellOutcome race(const std::string& arguments) const { return call("race " + arguments); }
};

TEST_F(RaceVerbTest, WritesTablesAndPictureAndContinues) {
  const ShellOutcome first = race("race.yml --output out --jobs 1 --set race.seeds=1,2 --set train.label-smoothing=0");
  ASSERT_EQ(first.status, 0) << first.text;
  for (const char* text : {"run 4 of 4: plain, 2 workers, seed 2", "simulated: 2 workers on 10gbe: ", "everything is in out"})
    EXPECT_THAT(first.text, HasSubstr(text));
  for (const char* file : {"table.md", "race.svg", "results.csv", "curves.csv"})
    EXPECT_GT(std::filesystem::file_size(directory_ + "/out/" + file), 100u) << file;
  const ShellOutcome second = race("race.yml --output out --set race.seeds=1,2 --set train.label-smoothing=0");
  EXPECT_EQ(second.status, 0);
  EXPECT_THAT(second.text, testing::Not(HasSubstr("training plain")));
  // Other text is refused, and nothing is touched.
  write("a", seeing(300, true)), write("b", seeing(300, false));
  const std::string before = directory_hash(path("out"));
  const ShellOutcome other = race("race.yml --output out --set race.seeds=1,2 --set train.label-smoothing=0");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.text, HasSubstr("this race began with different training data"));
  EXPECT_EQ(directory_hash(path("out")), before);
}

TEST_F(RaceVerbTest, ARefusedRaceLeavesNothingBehind) {
  const ShellOutcome small = race("race.yml --output deep/new --set vocab.size=16");
  EXPECT_EQ(small.status, 2) << small.text;
  EXPECT_THAT(small.text, HasSubstr("a vocabulary of 16 pieces cannot hold the text's characters"));
  write("b", "one\n");
  EXPECT_EQ(race("race.yml --output deep/new").status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("deep")));
}

TEST_F(RaceVerbTest, RecommendsNothingAfterFourUpdates) {
  EXPECT_THAT(race("race.yml --output few --jobs 1").text,
              HasSubstr("simulated: 2 workers on 10gbe: no arm to recommend: one worker made 4 updates, too few to tell strategies apart"));
}

TEST_F(RaceVerbTest, NamesTheKeysOfMissingText) {
  write("empty.yml", "vocab: {size: 40}\n");
  const ShellOutcome outcome = race("race.yml --set race.train=empty.yml");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.text, HasSubstr("there is no training text; set data.source and data.target in ./empty.yml, which race.train names"));
  write("bare.yml", "race: {arms: [{name: plain}]}\n");
  EXPECT_THAT(race("bare.yml").text, HasSubstr("set data.source and data.target in bare.yml, in the section race"));
  write("unvalidated.yml", "data: {source: a, target: b}\n");
  EXPECT_THAT(race("race.yml --set race.train=unvalidated.yml").text, HasSubstr("set valid.source and valid.target in ./unvalidated.yml"));
}

TEST_F(RaceVerbTest, SaysWhatIsWrong) {
  const ShellOutcome missing = race("no.yml");
  EXPECT_EQ(missing.status, 3);
  EXPECT_THAT(missing.text, HasSubstr("no.yml"));
  const ShellOutcome setting = race("race.yml --set race.seeds");
  EXPECT_EQ(setting.status, 2);
  EXPECT_THAT(setting.text, HasSubstr("write --set section.key=value"));
  const ShellOutcome key = race("race.yml --set strategy.wires=bf16");
  EXPECT_EQ(key.status, 2);
  EXPECT_THAT(key.text, HasSubstr("command line: arm one-worker: there is no key 'strategy.wires'; did you mean 'strategy.wire'?"));
}

}  // namespace
}  // namespace starling
