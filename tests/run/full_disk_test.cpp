// Runs on a disk that is full for a while: they go on, say so, and end as if nothing had happened.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text_files.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"
#include "tests/files/forwarding_files.h"
#include "tests/run/trainer_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::Not;

// A disk on which files whose path has this text in it cannot be made, so many times.
struct Fullness {
  std::string name;
  int times;
};
class FullForAWhile : public ForwardingFiles {
 public:
  explicit FullForAWhile(Fullness& full) : full_(full) {}
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected) override {
    if (path.find(full_.name) == std::string::npos || full_.times == 0) return ForwardingFiles::create(path, expected);
    --full_.times;
    throw IoError(path + ": the disk is full");
  }

 private:
  Fullness& full_;
};

class FullDiskTest : public TrainerTest {
 protected:
  int train(const std::string& run, Fullness full, bool beside_training = false) {
    World world = make_local_world();
    TrainingWatch watch;
    watch.silent = true;
    watch.files = [&full] { return std::make_unique<FullForAWhile>(full); };
    Config c = config(run);
    c.valid.metrics = {"cross-entropy"};
    c.checkpoint.beside_training = beside_training;  // when a failure is noticed then depends on the disk
    return run_training(c, world, watch);
  }
  std::vector<std::string> checkpoints(const std::string& run) const {
    const auto files = real_file_system();
    return files->list(path(run) + "/checkpoints");
  }
  // The updates whose checkpoints could not be saved.
  std::vector<int64_t> failed_saves(const std::string& run) const {
    std::vector<int64_t> updates;
    std::ifstream events(path(run) + "/events.jsonl");
    for (std::string line; std::getline(events, line);)
      if (const auto event = nlohmann::json::parse(line); event["type"] == "checkpoint-failed") updates.push_back(event["step"]);
    return updates;
  }
  std::string log(const std::string& run) const { return read_text_file(path(run) + "/train.log"); }
};

TEST_F(FullDiskTest, ARunGoesOnAndTriesAgainSoon) {
  ASSERT_EQ(train("whole", {"nothing", 0}), 0);
  ASSERT_EQ(train("full", {".tmp-step-00000010/model", 1}), 0);
  EXPECT_THAT(log("full"), HasSubstr("warning: the checkpoint of update 10 cannot be saved: " + path("full") +
                                     "/checkpoints/.tmp-step-00000010/model.safetensors: the disk is full; there is none so far; training "
                                     "goes on, and the next try follows after update 11\n"));
  EXPECT_THAT(read_text_file(path("full") + "/events.jsonl"), HasSubstr("\"type\":\"checkpoint-failed\""));
  EXPECT_EQ(checkpoints("full"), (std::vector<std::string>{"step-00000011", "step-00000020", "step-00000030"}));
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("full", "00000030", file), hash("whole", "00000030", file));
  EXPECT_THAT(log("whole"), Not(HasSubstr("warning")));
}

TEST_F(FullDiskTest, TriesBecomeFewer) {
  ASSERT_EQ(train("run", {".tmp-step-", 5}), 0);
  EXPECT_EQ(failed_saves("run"), (std::vector<int64_t>{10, 11, 13, 17, 20}));  // the last one is due anyway
  EXPECT_EQ(checkpoints("run"), (std::vector<std::string>{"step-00000030"}));
}

TEST_F(FullDiskTest, TriesBecomeFewerBesideTraining) {
  ASSERT_EQ(train("run", {".tmp-step-", 3}, true), 0);
  const std::vector<int64_t> tries = failed_saves("run");
  ASSERT_GE(tries.size(), 2u);
  EXPECT_EQ(tries[0], 10);
  // Each of its own update, none at once after the one before: those between 10 and 20 are at most as many as where they are noticed at
  // once.
  for (size_t i = 1; i < tries.size(); ++i) EXPECT_GT(tries[i], tries[i - 1]);
  EXPECT_LE(std::count_if(tries.begin(), tries.end(), [](int64_t step) { return step < 20; }), 4);
  EXPECT_EQ(checkpoints("run").back(), "step-00000030");
}

// The last checkpoint is the run's result: there the error ends it, and the same command continues.
TEST_F(FullDiskTest, TheLastCheckpointMustBeSaved) {
  try {
    train("run", {".tmp-step-00000030/", 2});  // when it is due, and again at the end
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the checkpoint of update 30 cannot be saved"));
    EXPECT_THAT(e.what(), HasSubstr("the newest one is of update 20: the same command continues from there"));
  }
  EXPECT_EQ(checkpoints("run"), (std::vector<std::string>{"step-00000010", "step-00000020"}));
  ASSERT_EQ(train("run", {"nothing", 0}), 0);
  ASSERT_EQ(train("whole", {"nothing", 0}), 0);
  EXPECT_EQ(hash("run", "00000030", "rank-0.safetensors"), hash("whole", "00000030", "rank-0.safetensors"));
}

TEST_F(FullDiskTest, ABestModelThatCannotBeSavedIsNotTheBest) {
  ASSERT_EQ(train("run", {".tmp-best/", 1}), 0);
  EXPECT_THAT(log("run"), HasSubstr("warning: the best model so far, of update 10, cannot be saved: "));
  const auto files = real_file_system();
  const auto best = best_checkpoint(*files, path("run"));
  ASSERT_TRUE(best);
  EXPECT_GT(best->step, 10);
  EXPECT_THAT(log("run"), HasSubstr("at update " + std::to_string(best->step)));
}

// The last one is tried twice; a run that says that it is complete leaves its best model.
TEST_F(FullDiskTest, TheBestModelOfTheLastUpdateMustBeSaved) {
  const auto files = real_file_system();
  ASSERT_EQ(train("twice", {".tmp-best/", 3}), 0);  // after updates 10, 20 and 30
  EXPECT_EQ(best_checkpoint(*files, path("twice"))->step, 30);
  try {
    train("never", {".tmp-best/", 4});
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the best model, of update 30, cannot be saved: "));
  }
  EXPECT_FALSE(best_checkpoint(*files, path("never")));
  EXPECT_EQ(checkpoints("never").back(), "step-00000030");
  ASSERT_EQ(train("never", {"nothing", 0}), 0);
  EXPECT_EQ(best_checkpoint(*files, path("never"))->step, 30);
}

}  // namespace
}  // namespace starling
