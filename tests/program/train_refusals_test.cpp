// What `starling train` refuses, and that nothing on disk differs afterwards; docs/guides/checkpoints.md promises it.
#include <gmock/gmock.h>

#include "tests/program/called.h"

namespace starling {
namespace {

using testing::HasSubstr;

class TrainRefusals : public CalledTest {
 protected:
  static constexpr const char* kTrain =
      "train --model.preset transformer-tiny --model.width 16 --model.heads 2 --model.feed-forward 16 --train.batch-tokens 100 "
      "--train.max-steps 2 --threads 1 --precision f32 --valid.metrics cross-entropy --valid.every 1 --checkpoint.every 1 ";
  static constexpr const char* kText = "--vocab.size 40 --data.source a --data.target b --valid.source va --valid.target vb ";

  void expect_refused(const std::string& beginning, const std::vector<Refusal>& table) const {
    starling::expect_refused(directory_, beginning, table);
  }
  void write_texts() const {
    write_counting();
    write("va", "one two three 1\n"), write("vb", "1 three two one\n");
    std::string other, short_one;
    for (int i = 0; i < 300; ++i) other += fmt::format("three three {}\n", i % 5);
    write("other", other), write("short", "one\n"), write("broken", std::string("one two\xff\n") + other);
  }
};

TEST_F(TrainRefusals, OfARunThatIsThereChangeNothing) {
  write_texts();
  ASSERT_EQ(call(std::string(kTrain) + kText + "--train.output run").status, 0);
  const std::string model = path("run/checkpoints/step-00000002");
  expect_refused("", {{"train --train.output run", 2, {"to continue the run in run: starling train run/config.yml"}}});
  expect_refused(
      "train -c run/config.yml --train.max-steps 3 ",
      {{"--data.source other", 2, {"data or filters (then data.train.0.source: a, now data.train.0.source: other); restore"}},
       {"--train.initial-model run/best", 2, {"train.initial-model run/best is the model of the run that train.output names, run: leave"}},
       {"--data.target short", 3, {"short:1: has 1 line but a has 300"}},
       {"--data.max-length 3", 2, {"(then data.max-length: 256, now data.max-length: 3)"}},
       {"--data.source missing", 3, {"missing"}},
       {"--valid.source missing", 3, {"missing"}},
       {"--valid.source short --valid.target other", 3, {"short:1: has 1 line but other has 300"}},
       {"--train.seed 2", 2, {"started with train.seed 1, not 2"}},
       {"--train.batch-tokens 150", 2, {"started with a global batch of 100 target tokens, not 150"}},
       {"--model.width 32", 2, {"started with another model"}},
       {"--vocab.size 50", 2, {"vocab.size is 50, but the vocabulary of the run in run was made with vocab.size 40"}},
       {"--vocab.joint false --model.tied-embeddings decoder", 2, {"started with another model"}},
       {"--vocab.source other", 3, {"other"}},
       {"--train.restart", 2, {"can, after update 2; leave train.restart out"}},
       {"--train.output " + model, 2, {"this is the directory of a model"}},
       {"--train.lerning-rate 1", 2, {"learning-rate"}}});
}

TEST_F(TrainRefusals, OfANewRunLeaveNothingBehind) {
  write_texts();
  ASSERT_EQ(call(std::string(kTrain) + kText + "--train.output run --train.max-steps 1").status, 0);
  std::filesystem::copy(path("run/best"), path("damaged"), std::filesystem::copy_options::recursive);
  std::fstream(path("damaged/model.safetensors"), std::ios::in | std::ios::out | std::ios::binary).seekp(300).put('x');
  std::filesystem::create_directory(path("empty"));
  const std::string fresh = std::string(kTrain) + "--data.source a --data.target b --valid.source va --valid.target vb ";
  const std::vector<Refusal> table = {
      {"--data.source broken", 3, {"broken:1: "}},
      {"--data.target short", 3, {"short:1: has 1 line"}},
      {"--valid.target missing", 3, {"missing"}},
      {"--vocab.size 16", 2, {"a vocabulary of 16 pieces cannot hold the text's characters"}},
      {"--vocab.source vocab/new.spm --vocab.size 16", 2, {"a vocabulary of 16 pieces cannot hold the text's characters"}},
      {"--vocab.source run/vocab.spm --vocab.size 50", 2, {"but run/vocab.spm was made with vocab.size 40"}},
      {"--vocab.source va", 3, {"va"}},
      {"--train.initial-model nowhere", 2, {"neither a model directory"}},
      {"--train.initial-model run --model.width 32", 2, {"train.initial-model names another model"}},
      {"--train.initial-model run --vocab.size 50", 2, {"vocab.size is 50, but the vocabulary of train.initial-model run was made with"}},
      {"--train.initial-model damaged", 3, {"damaged"}}};
  for (const std::string output : {"new", "deep/new", "empty"}) {
    const bool all = output == "deep/new";
    expect_refused(fresh + "--train.output " + output + " ", all ? table : std::vector<Refusal>{table[0], table[3], table[9]});
  }
}

TEST_F(TrainRefusals, OfASimulationLeaveNothingBehind) {
  write_texts();
  std::string simulate = std::string(kTrain) +
                         "--valid.source va --valid.target vb --train.output new/run --workers 2 "
                         "--cluster.forward-gflops 5 --cluster.backward-gflops 5 --cluster.update-gb-s 5 --cluster.memory-gb-s 5 ";
  simulate.replace(0, 5, "simulate");
  expect_refused(simulate + "--data.source a ",
                 {{"--data.target short", 3, {"short:1: has 1 line"}}, {"--data.target b --vocab.size 16", 2, {"cannot hold"}}});
}

// Not refused but stopped: nothing was wrong with what took long, so the next start uses it.
TEST_F(TrainRefusals, AFullDiskAtTheFirstStartKeepsTheVocabulary) {
  write_texts();
  std::string a, b;
  for (int i = 0; i < 20000; ++i) a += fmt::format("one two three {}\n", i % 7), b += fmt::format("{} three two one\n", i % 7);
  write("a", a), write("b", b);
  const std::string train = std::string(kTrain) + kText + "--train.output run";
  const ShellOutcome full = run_shell("cd '" + directory_ + "' && ulimit -f 200 && '" STARLING_BINARY "' " + train);
  EXPECT_EQ(full.status, 3) << full.text;
  EXPECT_THAT(full.text, HasSubstr("run/data/train."));
  EXPECT_THAT(full.text, HasSubstr("vocabulary run/vocab.spm: training"));
  EXPECT_TRUE(std::filesystem::exists(path("run/vocab.spm")));
  EXPECT_FALSE(std::filesystem::exists(path("run/data")));  // not one shard was whole
  EXPECT_FALSE(std::filesystem::exists(path("run/lock")));
  const ShellOutcome next = call(train);
  EXPECT_EQ(next.status, 0) << next.text;
  EXPECT_THAT(next.text, testing::Not(HasSubstr("vocabulary run/vocab.spm: training")));
}

}  // namespace
}  // namespace starling
