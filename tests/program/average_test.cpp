// `starling average` on a run whose clipping of states falls from checkpoint to checkpoint: the weights are the mean, the settings are the
// last checkpoint's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "storage/safetensors.h"
#include "tests/program/called.h"

namespace starling {
namespace {

class Average : public CalledTest {};

TEST_F(Average, TakesTheMeanOfTheWeightsAndTheSettingsOfTheLast) {
  write("a", seeing(100, true)), write("b", seeing(100, false));
  ShellOutcome o = call(
      "train --data.source a --data.target b --train.output run --vocab.size 60 --model.preset gnmt-small --model.encoder-layers 2 "
      "--model.decoder-layers 2 --model.width 16 --model.clip 1 --train.clip-start 8 --checkpoint.every 2 "
      "--checkpoint.keep 2 --data.source-language en "
      "--train.batch-tokens 200 --train.threads 1 --train.precision f32 --train.max-steps 4");
  ASSERT_EQ(o.status, 0) << o.text;
  o = call("average --run run -o mean");
  ASSERT_EQ(o.status, 0) << o.text;
  o = call("average -m run -o one");  // the best or the latest
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, testing::HasSubstr("the mean of 1 checkpoint is in one"));
  EXPECT_EQ(call("average -m run/checkpoints/step-00000002 run/checkpoints/step-00000004 -o two").text,
            "the mean of 2 checkpoints is in two\n");
  const auto files = real_file_system();
  EXPECT_THAT(files->read_file(directory_ + "/mean/config.yml"), testing::HasSubstr("  clip: 1 "));
  EXPECT_THAT(files->read_file(directory_ + "/mean/config.yml"), testing::HasSubstr("  source-language: en "));
  EXPECT_THAT(files->read_file(directory_ + "/run/checkpoints/step-00000002/config.yml"), testing::Not(testing::HasSubstr("  clip: 1 ")));
  const auto weights = [&](const std::string& model) {
    const SafetensorsFile file(*files, directory_ + "/" + model + "/model.safetensors");
    const auto& data = file.at("encoder.embedding").data;
    std::vector<float> values(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  };
  const std::vector<float> mean = weights("mean"), early = weights("run/checkpoints/step-00000002"),
                           late = weights("run/checkpoints/step-00000004");
  for (size_t i = 0; i < mean.size(); ++i) ASSERT_NEAR(mean[i], 0.5 * (early[i] + late[i]), 1e-6) << i;

  // By whatever names: those of one checkpoint, and of a copy of it.
  ASSERT_EQ(run_shell("cp -r " + directory_ + "/run/checkpoints/step-00000004 " + directory_ + "/copy").status, 0);
  for (const std::string second : {"run/checkpoints/step-00000004", "run", "copy"}) {
    o = call("average run/checkpoints/step-00000002 run/checkpoints/step-00000004 " + second + " -o three");
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.text, "starling: error: run/checkpoints/step-00000004 and " + second +
                          " have the same weights, which would count twice; name each checkpoint once (best is a copy of one)\n");
    EXPECT_FALSE(files->exists(directory_ + "/three"));
  }
}

// The mean that does best on a validation text is the one that is written, and it does as well there as was said.
TEST_F(Average, ChoosesTheMeanThatDoesBestOnAText) {
  write("a", seeing(100, true)), write("b", seeing(100, false)), write("va", seeing(30, true)), write("vb", seeing(30, false));
  ShellOutcome o = call(
      "train --data.source a --data.target b --train.output run --vocab.size 60 --model.preset transformer-tiny --model.width 16 "
      "--checkpoint.every 10 --checkpoint.keep 9 --train.learning-rate 0.03 --train.warmup 1 --train.schedule constant "
      "--train.batch-tokens 100 --train.threads 1 --train.precision f32 --train.max-steps 60 --train.max-tokens 0");
  ASSERT_EQ(o.status, 0) << o.text;
  o = call("average --run run --source va --target vb -o best");
  ASSERT_EQ(o.status, 0) << o.text;
  std::istringstream lines(o.text);
  double least = 1e9;
  std::string best;
  int tried = 0;
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find(": cross-entropy "); at != std::string::npos) {
      ++tried;
      if (const double loss = std::stod(line.substr(at + 16)); loss < least)
        least = loss, best = line.substr(line.find(", ") + 2, at - line.find(", ") - 2);  // of "mean 2 of 11, the last 2"
    }
  EXPECT_EQ(tried, 5 + 6) << o.text;  // 1, 2, 3, 4 and 6 of six, and six powers
  EXPECT_THAT(o.text, testing::HasSubstr(fmt::format("best: {}, cross-entropy {:.4f}\nthe mean of {} is in best\n", best, least, best)));
  // What the file holds does that well too: a validation of a run that starts from it says so.
  o = call(
      "train --train.initial-model best --train.output again --data.source a --data.target b --valid.source va --valid.target vb "
      "--valid.metrics cross-entropy --train.precision f32 --train.threads 1 --train.max-steps 1 --train.batch-tokens 100");
  ASSERT_EQ(o.status, 0) << o.text;
  EXPECT_THAT(o.text, testing::HasSubstr(fmt::format("[valid] step 0 | epoch 1 | cross-entropy {:.4f}", least)));
  EXPECT_EQ(call("average --run run --source va -o x").text,
            "starling: error: --source is given without --target; a validation text is both\n");
  EXPECT_THAT(call("average --run run --metric bleu -o x").text, testing::HasSubstr("name it with --source and --target"));
}

// As many weights, but what they are multiplied with differs.
TEST_F(Average, RefusesModelsThatComputeSomethingElse) {
  const std::string fixture = STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model";
  ASSERT_EQ(run_shell("cd " + directory_ + " && cp -r " + fixture + " two && rm two/manifest.json && sed 's/heads: 2/heads: 4/' " +
                      fixture + "/config.yml > two/config.yml")
                .status,
            0);
  const ShellOutcome o = call("average " + fixture + " two -o mean");
  EXPECT_EQ(o.status, 2) << o.text;
  EXPECT_THAT(o.text,
              testing::HasSubstr("differ in architecture or vocabulary; name models that share both, such as the checkpoints of one run"));
}

}  // namespace
}  // namespace starling
