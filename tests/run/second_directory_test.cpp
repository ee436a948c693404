// checkpoint.second-directory: copies of checkpoints and of the best model, from which a run continues whose own directory is lost.
#include "base/sha256.h"
#include "tests/files/forwarding_files.h"
#include "tests/files/memory_files.h"
#include "tests/run/start.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Whatever has this in its path fails.
class FailingFiles final : public ForwardingFiles {
 public:
  explicit FailingFiles(std::string failing) : failing_(std::move(failing)) {}

 private:
  FileSystem& at(const std::string& path) override {
    if (path.find(failing_) != std::string::npos) throw IoError(path + ": Input/output error");
    return ForwardingFiles::at(path);
  }
  const std::string failing_;
};

class SecondDirectory : public StartTest {
 protected:
  Config config(const std::string& run, const std::string& updates, const std::vector<Override>& more = {}) const {
    std::vector<Override> all = WordRunTest::given(run, more);
    all.push_back({"train.max-steps", updates});
    all.push_back({"train.schedule", "constant"});
    all.push_back({"checkpoint.keep", "2"});
    return load_run_config("", all);
  }
  Override second() const { return {"checkpoint.second-directory", path("second")}; }
  std::string digest(const std::string& file) const { return sha256_file(*real_file_system(), path(file)); }
};

TEST_F(SecondDirectory, HasCopiesFromWhichALostRunContinues) {
  run_training(config("whole", "8"));
  run_training(config("run", "6", {second()}));
  for (const char* name : {"checkpoints/step-00000006", "checkpoints/step-00000004", "best"})
    for (const char* file : {"/model.safetensors", "/manifest.json"})
      EXPECT_EQ(digest("second/run/" + std::string(name) + file), digest("run/" + std::string(name) + file)) << name << file;
  EXPECT_THAT(names("second/run/checkpoints"), ElementsAre("step-00000004", "step-00000006"));

  std::filesystem::remove_all(path("run"));
  run_training(config("run", "8", {second()}));
  EXPECT_THAT(log("run"), HasSubstr("continuing after update 6 from " + path("second/run/checkpoints/step-00000006")));
  EXPECT_EQ(digest("run/checkpoints/step-00000008/model.safetensors"), digest("whole/checkpoints/step-00000008/model.safetensors"));
  EXPECT_EQ(digest("run/best/model.safetensors"), digest("whole/best/model.safetensors"));
  EXPECT_THAT(names("second/run/checkpoints"), ElementsAre("step-00000006", "step-00000008"));
}

// Commands name directories as they like; a directory that is lost is still the same one.
TEST_F(SecondDirectory, IsFoundByRelativePathsOfALostRun) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(path("here"));
  std::filesystem::current_path(path("here"));
  for (const char* updates : {"4", "6"}) {
    Config c = config("run", updates, {{"checkpoint.second-directory", "copies"}});
    c.train.output = "run/";
    run_training(c);
    std::filesystem::rename("run", fmt::format("lost-{}", updates));
  }
  EXPECT_THAT(names("here/copies/run/checkpoints"), ElementsAre("step-00000004", "step-00000006"));
  EXPECT_THAT(log("here/lost-6"), HasSubstr("continuing after update 4 from copies/run/checkpoints/step-00000004"));
  for (const char* inside : {"new", "new/copies", "./new/../new/."}) {
    Config c = config("new", "4", {{"checkpoint.second-directory", inside}});
    c.train.output = "new";
    EXPECT_THROW(run_training(c), ConfigError) << inside;
    EXPECT_FALSE(std::filesystem::exists("new"));
  }
  std::filesystem::current_path(before);
}

TEST_F(SecondDirectory, TheNewerCheckpointCounts) {
  run_training(config("run", "4", {second()}));
  run_training(config("run", "6"));  // without copies
  run_training(config("run", "7", {second()}));
  EXPECT_THAT(log("run"), HasSubstr("continuing after update 6 from " + path("run/checkpoints/step-00000006")));
  std::ofstream(path("run/checkpoints/step-00000007/model.safetensors"), std::ios::app) << "x";
  run_training(config("run", "8", {second()}));
  EXPECT_THAT(log("run"), HasSubstr("continuing after update 7 from " + path("second/run/checkpoints/step-00000007")));
}

TEST_F(SecondDirectory, OfADividedModelIsReadByAllRanks) {
  const auto train = [&](const std::string& run, const std::string& updates) {
    Config c = config(run, updates, {second()});
    c.parallel.pipeline = 2;
    train_simulated(c, 2);
  };
  train("whole", "8");
  train("run", "6");
  std::filesystem::remove_all(path("run"));
  train("run", "8");
  EXPECT_THAT(log("run"), HasSubstr("continuing after update 6 from " + path("second/run/checkpoints/step-00000006")));
  for (const char* file : {"model.safetensors", "rank-0.safetensors", "rank-1.safetensors"})
    EXPECT_EQ(digest("run/checkpoints/step-00000008/" + std::string(file)), digest("whole/checkpoints/step-00000008/" + std::string(file)));
}

TEST_F(SecondDirectory, ThatFailsIsOnlyReported) {
  World world = make_local_world();
  TrainingWatch watch;
  watch.silent = true;
  watch.files = [&] { return std::make_unique<FailingFiles>("second/run/checkpoints/.tmp-step-00000004"); };
  EXPECT_EQ(run_training(config("run", "8", {second()}), world, watch), 0);
  EXPECT_THAT(log("run"), AllOf(HasSubstr("warning: the checkpoint of update 4 could not be copied to checkpoint.second-directory: "),
                                HasSubstr("Input/output error")));
  EXPECT_THAT(names("run/checkpoints"), ElementsAre("step-00000006", "step-00000008"));
  EXPECT_THAT(names("second/run/checkpoints"), ElementsAre("step-00000006", "step-00000008"));
  // A disk that is gone does not keep a run from its own checkpoints.
  watch.files = [&] { return std::make_unique<FailingFiles>("second/"); };
  Config more = config("run", "10", {second()});
  std::filesystem::remove_all(path("second"));
  EXPECT_EQ(run_training(more, world, watch), 0);
  EXPECT_THAT(log("run"), HasSubstr("warning: checkpoint.second-directory cannot be used: "));
}

TEST_F(SecondDirectory, ForgetsWhatTheGuardHasUndone) {
  MemoryFileSystem files;
  files.make_directories("run");
  CheckpointStore store(files, "run", 3);
  store.also_in("second/run");
  const Part part = text_part("part", "content");
  for (const int64_t step : {2, 4, 6}) store.save(step, {&part, 1});
  EXPECT_EQ(latest_checkpoint(files, "second/run")->step, 6);
  store.remove_after(3);
  EXPECT_EQ(latest_checkpoint(files, "second/run")->step, 2);
  store.save_best(2, {&part, 1});
  EXPECT_EQ(best_checkpoint(files, "second/run")->step, 2);
}

TEST_F(SecondDirectory, MustBeAnotherOne) {
  std::filesystem::create_directory_symlink(directory_, path("link"));
  for (const std::string& second : {directory_.string(), path("link"), path("run"), path("run/checkpoints")}) {
    EXPECT_THAT(error<ConfigError>(config("run", "2", {{"checkpoint.second-directory", second}})),
                AllOf(HasSubstr("the copies would lie in train.output"), HasSubstr("give a directory elsewhere")))
        << second;
    EXPECT_FALSE(std::filesystem::exists(path("run")));
  }
  std::ofstream(path("file")) << "no directory\n";
  EXPECT_THAT(error<IoError>(config("run", "2", {{"checkpoint.second-directory", path("file")}})),
              HasSubstr(path("file") + ": a directory is needed here"));
  EXPECT_FALSE(std::filesystem::exists(path("run/checkpoints")));
}

TEST_F(SecondDirectory, IsNotThatOfAnotherRunOfTheSameName) {
  run_training(config("one/run", "2", {second()}));
  EXPECT_THAT(
      error<ConfigError>(config("two/run", "4", {second()})),
      AllOf(HasSubstr("has the copies of the run " + std::filesystem::weakly_canonical(path("one/run")).string()), HasSubstr("run.txt")));
  EXPECT_FALSE(std::filesystem::exists(path("two/run/checkpoints")));
  std::filesystem::remove(path("second/run/run.txt"));
  run_training(config("two/run", "4", {second()}));
  EXPECT_THAT(log("two/run"), HasSubstr("continuing after update 2 from "));
}

}  // namespace
}  // namespace starling
