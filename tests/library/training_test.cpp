// Training through the library: what is stopped and continued ends as what was not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "output.h"
#include "starling/model.h"
#include "starling/trainer.h"
#include "tests/own_directory.h"

namespace {

using library_test::lines_of;
using library_test::output_of;
using testing::HasSubstr;

TEST(LibraryTraining, TrainsStopsAndContinues) {
  const starling::OwnDirectory directory;
  const std::string run = directory.file("run"), text = directory.file("text");
  output_of(std::string(STARLING_BINARY) + " demo-corpus --output " + text + " --train 400 2>&1");
  starling::TrainOptions options;
  options.keys = {{"data.train.0.source", text + "/train.en"},
                  {"data.train.0.target", text + "/train.de"},
                  {"train.output", run},
                  {"vocab.size", "500"},
                  {"vocab.sample-lines", "500"},
                  {"model.preset", "transformer-small"},
                  {"model.width", "16"},
                  {"model.feed-forward", "32"},
                  {"model.heads", "2"},
                  {"model.encoder-layers", "1"},
                  {"model.decoder-layers", "1"},
                  {"train.batch-tokens", "200"},
                  {"train.max-steps", "6"},
                  {"log.every", "1"}};
  int events = 0, lines = 0;
  options.event = [&](const std::string& json) {
    EXPECT_THAT(json, testing::StartsWith("{\"schema\""));
    ++events;
  };
  options.log = [&](const std::string&) { ++lines; };
  int asked = 0;
  options.stop = [&] { return ++asked > 3; };
  const starling::TrainResult first = starling::train("", options);
  EXPECT_FALSE(first.complete);
  EXPECT_GT(events, 1);
  EXPECT_GT(lines, 1);
  options.stop = {};
  const starling::TrainResult second = starling::train("", options);
  EXPECT_TRUE(second.complete);
  EXPECT_EQ(starling::describe_model(second.directory).step, 6);
}

TEST(LibraryTraining, ValidatesByAScriptAndKeepsWhatItScored) {
  const starling::OwnDirectory directory;
  const std::string work = directory.path();
  output_of(std::string(STARLING_BINARY) + " demo-corpus --output " + work + "/text --train 400 --valid 30 2>&1");
  {
    std::ofstream script(work + "/score.sh");
    script << "#!/bin/sh\ntest $(wc -l <\"$1\") = 30 && cmp -s \"$2\" " << work << "/text/valid.en && cmp -s \"$3\" " << work
           << "/text/valid.de || exit 1\necho $1 >>" << work << "/calls\necho score $(wc -l <" << work << "/calls)\n";
  }
  output_of("chmod +x " + work + "/score.sh");
  starling::TrainOptions options;
  const std::string run = work + "/run";
  options.keys = {{"data.source", work + "/text/train.en"},
                  {"data.target", work + "/text/train.de"},
                  {"valid.source", work + "/text/valid.en"},
                  {"valid.target", work + "/text/valid.de"},
                  {"valid.metrics", "script,cross-entropy"},
                  {"valid.script", work + "/score.sh"},
                  {"valid.every", "2"},
                  {"valid.keep-translations", "true"},
                  {"valid.beam", "1"},
                  {"log.tensorboard", "true"},
                  {"train.output", run},
                  {"vocab.size", "300"},
                  {"model.preset", "transformer-tiny"},
                  {"train.batch-tokens", "200"},
                  {"train.max-steps", "4"}};
  std::vector<std::string> validations;
  options.event = [&](const std::string& json) {
    if (json.find("\"type\":\"validation\"") != std::string::npos) validations.push_back(json);
  };
  EXPECT_TRUE(starling::train("", options).complete);
  ASSERT_EQ(validations.size(), 2u);
  EXPECT_THAT(validations[0], HasSubstr("\"script\":1.0"));
  EXPECT_THAT(validations[1], HasSubstr("\"script\":2.0"));
  EXPECT_THAT(validations[1], HasSubstr("\"best\":true"));
  EXPECT_EQ(output_of("cat " + work + "/calls"), run + "/validations/0000002.txt\n" + run + "/validations/0000004.txt\n");
  EXPECT_EQ(lines_of(output_of("cat " + run + "/validations/0000004.txt")).size(), 30u);
  EXPECT_EQ(output_of("ls " + run + "/tensorboard | wc -l"), "1\n");
  // Nor does a script that fails end the run.
  output_of("echo exit 9 >" + work + "/score.sh");
  options.keys.back().second = "6";
  validations.clear();
  EXPECT_TRUE(starling::train("", options).complete);
  ASSERT_EQ(validations.size(), 1u);
  EXPECT_THAT(validations[0], testing::Not(HasSubstr("script\":")));
}

// A run on a pipe that is stopped and continued ends with the parameters of one that was not.
TEST(LibraryTraining, TextFromAPipeContinuesExactly) {
  const starling::OwnDirectory directory;
  const std::string work = directory.path();
  output_of("mkfifo " + work + "/pipe");
  output_of(std::string(STARLING_BINARY) + " demo-corpus --output " + work + "/text --train 4000 2>&1");
  const std::vector<std::string> lines = lines_of(output_of("paste " + work + "/text/train.en " + work + "/text/train.de"));
  const auto options = [&](const std::string& run, std::vector<std::pair<std::string, std::string>> more) {
    starling::TrainOptions o;
    o.keys = {{"train.output", work + "/" + run},
              {"vocab.size", "500"},
              {"vocab.source", work + "/vocab.spm"},
              {"model.preset", "transformer-tiny"},
              {"train.batch-tokens", "300"},
              {"train.max-steps", "60"},
              {"train.threads", "1"},
              {"train.precision", "f32"}};
    o.keys.insert(o.keys.end(), more.begin(), more.end());
    return o;
  };
  starling::train("", options("first", {{"data.source", work + "/text/train.en"},
                                        {"data.target", work + "/text/train.de"},
                                        {"vocab.source", ""},
                                        {"train.max-steps", "1"}}));
  output_of("cp " + work + "/first/vocab.spm " + work + "/vocab.spm");

  const auto train = [&](const std::string& run, int updates) {
    starling::TrainOptions o = options(run, {{"data.tsv", work + "/pipe"}, {"data.window", "150"}});
    std::atomic<size_t> next{0};
    std::thread producer;
    o.log = [&](const std::string& line) {
      if (const size_t at = line.find("must continue with line "); at != std::string::npos) next = std::stoul(line.substr(at + 24)) - 1;
    };
    // It begins when the run says with which line: after the vocabulary, which is opened before the pipe.
    std::atomic<bool> done{false};
    producer = std::thread([&] {
      FILE* pipe = fopen((work + "/pipe").c_str(), "w");  // waits for the reader
      usleep(200000);
      for (size_t i = next; i < lines.size() && !done; ++i)
        if (fputs((lines[i] + "\n").c_str(), pipe) < 0) break;
      fclose(pipe);
    });
    int asked = 0;
    if (updates > 0) o.stop = [&] { return ++asked > 3 * updates; };
    const bool complete = starling::train("", o).complete;
    done = true;
    // A run that needs no more text than it has leaves the pipe alone, and its writer waits for a reader.
    const int reader = open((work + "/pipe").c_str(), O_RDONLY | O_NONBLOCK);
    close(reader);
    producer.join();
    return complete;
  };
  signal(SIGPIPE, SIG_IGN);
  EXPECT_TRUE(train("whole", 0));
  EXPECT_FALSE(train("parts", 3));
  EXPECT_FALSE(train("parts", 7));
  EXPECT_TRUE(train("parts", 0));
  signal(SIGPIPE, SIG_DFL);
  output_of("cmp " + work + "/whole/checkpoints/step-00000060/model.safetensors " + work +
            "/parts/checkpoints/step-00000060/model.safetensors");
}

}  // namespace
