// Values as people of other languages or programs write them are answered with ours wherever they are given: options, configurations,
// clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace starling {
namespace {

class DecimalComma : public ProgramTest {};

TEST_F(DecimalComma, IsAnsweredWithAPoint) {
  write("flow.yml", "train: {output: run, learning-rate: 0,3, warmup: 5}\n");
  write("cluster.yml", "cluster:\n  ranks: 2\n  jitter: 0,2\n");
  const std::string sim = "bench distributed --preset transformer-tiny --cluster.ranks 2 ";
  for (const auto& [arguments, answer] :
       {std::pair<std::string, std::string>{"translate --model m --length-penalty 0,6",
                                            "--length-penalty: Value 0,6 not in range [0 - 10]; did you mean 0.6? See 'starling translate"},
        {"translate --model m --beam 1,000", "--beam: Value 1,000 not in range"},
        {"translate --model m --beam 1,000", "; did you mean 1000? See"},
        {"translate --model m --beam 1,5", "not in range 1 to 1024; see"},
        {"translate --model m --beam 4k", "not in range 1 to 1024; see"},
        {"translate --model m --length-penalty 1,250", "not in range [0 - 10]; did you mean 1.250? See"},
        {"evaluate --hypotheses a --references b --seed 12,345", "Could not convert: --seed = 12,345; did you mean 12345? See"},
        {"train -c flow.yml", "flow.yml:1: there is no key '3' in train; within braces a comma ends the value: write 0.5 with a point"},
        {sim + "--cluster.jitter 0,2", "command line: cluster.jitter: '0,2' is not a number; did you mean 0.2? Give"},
        {sim + "--cluster cluster.yml", "cluster.yml:3: cluster.jitter: '0,2' is not a number; did you mean 0.2? Give"}}) {
    const ShellOutcome o = run(arguments);
    EXPECT_EQ(o.status, 2) << o.text;
    EXPECT_THAT(o.text, testing::HasSubstr(answer)) << arguments;
    EXPECT_THAT(o.text, testing::Not(testing::HasSubstr("measuring"))) << "refused before anything is measured";
  }
}

class ForeignWord : public ProgramTest {};

TEST_F(ForeignWord, IsAnsweredWithOurs) {
  for (const auto& [arguments, answer] :
       {std::pair<std::string, std::string>{"export --model m -o x --to firefox", "; did you mean bergamot? See 'starling export"},
        {"export --model m -o x --to CT2", "; did you mean ctranslate2? See"},
        {"export --model m -o x --to argoss", "; did you mean 'argos'? See"},
        {"export --model m -o x --to tflite", "not in {ctranslate2,argos,marian,bergamot,huggingface}; see"},
        {"translate --model m --alignment hard", "; did you mean pieces? See"},
        {"translate --model m --precision int8_float32", "; did you mean int8? See"}}) {
    const ShellOutcome o = run(arguments);
    EXPECT_EQ(o.status, 2) << o.text;
    EXPECT_THAT(o.text, testing::HasSubstr(answer)) << arguments;
  }
}

}  // namespace
}  // namespace starling
