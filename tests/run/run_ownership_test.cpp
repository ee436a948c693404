// What a run owns is neither overwritten nor lost, however it is started: its names, its vocabulary's rule, the work of a start that failed
// over nothing of the user's, and vocabularies that several runs share.
#include <fmt/format.h>

#include "base/text_files.h"
#include "run/run_directory.h"
#include "run/run_tokens.h"
#include "storage/outputs.h"
#include "tests/base/refused_threads.h"
#include "tests/cli/directory_hash.h"
#include "tests/files/forwarding_files.h"
#include "tests/run/word_run.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RunOwnership : public WordRunTest {
 protected:
  static void quiet(const std::string&) {}
};

// The real file system, whose disk is full when a file with this in its name is made.
class FullDisk : public ForwardingFiles {
 public:
  explicit FullDisk(std::string name) : name_(std::move(name)) {}
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected) override {
    if (path.find(name_) != std::string::npos) throw IoError(path + ": the disk is full");
    return ForwardingFiles::create(path, expected);
  }

 private:
  std::string name_;
};

TEST_F(RunOwnership, EveryNameThatTrainingMakesIsInTheList) {
  const std::vector<Override> two{{"vocab.joint", "false"}, {"model.tied-embeddings", "none"}};
  EXPECT_EQ(run_training(config("run")), 0);
  EXPECT_EQ(run_training(config("two", two)), 0);
  write_word_pairs(path("c"), path("d"), 20, 4, 2, 3);
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "8"}, {"valid.source", path("c")}, {"valid.target", path("d")}})), 0);
  fs::remove_all(path("run/checkpoints"));
  EXPECT_EQ(run_training(config("run", {{"train.restart", "true"}})), 0);
  for (const char* run : {"run", "two"}) {
    EXPECT_TRUE(is_run_directory(path(run)));
    for (const std::string& name : names(run)) EXPECT_TRUE(belongs_to_run(name)) << name;
  }
  EXPECT_TRUE(fs::exists(path("run/before-restart/config.yml")));
  EXPECT_FALSE(is_run_directory(directory_.string()));
}

// Without a shared disk only the host of rank 0 has checkpoints; here another rank's host has them.
TEST_F(RunOwnership, ARunDoesNotBeginAnewWhereRankZeroHasMoved) {
  train_simulated({config("alpha"), config("beta")});
  EXPECT_EQ(names("alpha/checkpoints"), (std::set<std::string>{"step-00000002", "step-00000004"}));
  const std::string refusal = error<ConfigError>([&] { train_simulated({config("beta"), config("alpha")}); });
  EXPECT_THAT(refusal,
              HasSubstr(": rank 1 on node1 has a checkpoint of update 4, but rank 0 on node0 has none: start rank 0 on that host"));
  const std::vector<Override> on{{"train.max-steps", "6"}};
  train_simulated({config("alpha", on), config("beta", on)});
}

TEST_F(RunOwnership, AnotherNormalizationIsRefusedAndTheTruthIsWrittenDown) {
  EXPECT_EQ(run_training(config("first", {{"vocab.normalization", "nmt_nfkc"}})), 0);
  const auto refusal = [&](const std::string& run, std::vector<Override> more) {
    more.emplace_back("vocab.normalization", "nfkc");
    return error<ConfigError>([&] { run_training(config(run, more)); });
  };
  // The run itself, a vocabulary that is there, and fine-tuning.
  const std::string before = directory_hash(directory_);
  EXPECT_THAT(refusal("first", {}), HasSubstr("vocab.normalization is nfkc, but the vocabulary of the run in " + path("first") +
                                              " was made with vocab.normalization nmt_nfkc, and stays as it is; set it to nmt_nfkc or "
                                              "leave it out"));
  EXPECT_THAT(refusal("new", {{"vocab.source", path("first/vocab.spm")}}), HasSubstr("was made with vocab.normalization nmt_nfkc"));
  EXPECT_THAT(refusal("new", {{"train.initial-model", path("first")}}), HasSubstr("was made with vocab.normalization nmt_nfkc"));
  EXPECT_EQ(directory_hash(directory_), before);
  // Not told, it is what it is.
  EXPECT_EQ(run_training(config("first", {{"train.max-steps", "5"}})), 0);
  EXPECT_EQ(run_training(config("shared", {{"vocab.source", path("first/vocab.spm")}})), 0);
  EXPECT_THAT(read_text_file(path("shared/train.log")), HasSubstr("vocabulary " + path("first/vocab.spm") + ": exists already, "));
  EXPECT_THAT(read_text_file(path("first/train.log")), Not(HasSubstr("exists already")));
  EXPECT_EQ(run_training(config("tuned", {{"train.initial-model", path("first")}})), 0);
  for (const char* run : {"first", "shared", "tuned"})
    EXPECT_EQ(load_config(path(run) + "/config.yml").vocab.training.normalization, "nmt_nfkc") << run;
}

TEST_F(RunOwnership, AFullDiskKeepsTheVocabularyAndWholeShards) {
  const Config c = config("run");
  const auto start = [&](const char* full, const auto& what) {
    FullDisk files(full);
    RunDirectory directory(files, c, 1, quiet);
    try {
      const Vocabularies v = directory.vocabularies();
      directory.open_store(v, {.shard_pairs = 20});
      what();
    } catch (const std::exception& e) {
      directory.failed(e);
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(start(".00002", [] {}), HasSubstr("the disk is full"));
  EXPECT_THAT(names("run"), ElementsAre("data", "vocab.spm"));
  EXPECT_EQ(names("run/data").size(), 2);
  // The next start takes them up; another rank that is lost costs nothing either.
  EXPECT_EQ(start("nothing", [] { throw PeerError("rank 1 is gone"); }), "rank 1 is gone");
  EXPECT_EQ(names("run/data").size(), 4);
  fs::remove_all(path("run"));
  // What is refused leaves nothing.
  EXPECT_EQ(start("nothing", [] { throw DataError("other text"); }), "other text");
  EXPECT_FALSE(fs::exists(path("run")));
  // Nothing is kept where nothing was done.
  EXPECT_THAT(start(".00000", [] {}), HasSubstr("the disk is full"));
  EXPECT_THAT(names("run"), ElementsAre("vocab.spm"));
}

// The configuration asks for too many threads, or the system gives too few: the vocabulary has nothing to do with it.
TEST_F(RunOwnership, WantOfThreadsKeepsTheVocabulary) {
  const Config c = config("run");
  const auto files = real_file_system();
  const auto failed = [&](const std::function<void(RunDirectory&, const Vocabularies&)>& start) {
    RunDirectory directory(*files, c, 1, quiet);
    const Vocabularies v = directory.vocabularies();
    EXPECT_TRUE(fs::exists(path("run/vocab.spm")));
    return error<ConfigError>([&] {
      try {
        start(directory, v);
      } catch (const std::exception& e) {
        directory.failed(e);
        throw;
      }
    });
  };
  EXPECT_EQ(failed([](auto&, auto&) { throw ConfigError("another option"); }), "another option");
  EXPECT_FALSE(fs::exists(path("run")));
  const auto few = [](RunDirectory& directory, const Vocabularies& v) {
    const RefusedThreads refused;
    directory.open_store(v, {.threads = 2});
  };
  EXPECT_THAT(failed(few), HasSubstr("cannot be started"));
  EXPECT_THAT(names("run"), ElementsAre("vocab.spm"));
  // Tokens of new files, which the same run needs too, neither.
  EXPECT_EQ(run_training(c), 0);
  fs::last_write_time(path("a"), fs::file_time_type::clock::now());
  EXPECT_THAT(failed(few), HasSubstr("cannot be started"));
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "5"}})), 0);
}

TEST_F(RunOwnership, TokensOfAKilledStartAreClearedAway) {
  EXPECT_EQ(run_training(config("run")), 0);
  const auto files = real_file_system();
  const std::string before = directory_hash(path("run"));
  write_word_pairs(path("c"), path("d"), 40, 4, 2, 3);
  const Vocabulary vocabulary = Vocabulary::load(path("run/vocab.spm"));
  const std::vector<Override> other{{"data.source", path("c")}, {"data.target", path("d")}};
  const auto killed = [&] {
    TokenStore::open_or_build(*files, path("run/data.new"), config("run", other).data, vocabulary, vocabulary, {.shard_pairs = 20});
    fs::remove(path("run/data.new/train.index"));
  };
  killed();
  EXPECT_THAT(error<ConfigError>([&] { run_training(config("run", other)); }), HasSubstr("started with different training data"));
  EXPECT_EQ(directory_hash(path("run")), before);
  // The run's own text again.
  killed();
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "5"}})), 0);
  EXPECT_FALSE(fs::exists(path("run/data.new")));
}

TEST_F(RunOwnership, ASharedVocabularyIsNotLostWithAnotherRun) {
  const std::vector<Override> shared{{"vocab.source", path("shared/v.spm")}};
  {
    const auto files = real_file_system();
    const Config mine = config("mine", shared);
    RunDirectory directory(*files, mine, 1, quiet);
    const Vocabularies v = directory.vocabularies();
    EXPECT_FALSE(fs::exists(path("shared")));  // it is not known yet whether this start succeeds
    EXPECT_EQ(run_training(config("other", shared)), 0);
    EXPECT_EQ(Vocabulary::load(path("shared/v.spm")).hash(), v.source().hash());
  }  // failed
  EXPECT_FALSE(fs::exists(path("mine")));
  ASSERT_TRUE(fs::exists(path("shared/v.spm")));
  EXPECT_THAT(names("other"), Not(testing::Contains("vocab.spm.new")));
  EXPECT_EQ(run_training(config("other", {{"vocab.source", path("shared/v.spm")}, {"train.max-steps", "5"}})), 0);
  // One that another run makes meanwhile, from other text, is not written over.
  const std::vector<Override> again{{"vocab.source", path("shared/w.spm")}};
  const auto files = real_file_system();
  const Config mine = config("mine", again);
  RunDirectory directory(*files, mine, 1, quiet);
  const Vocabularies v = directory.vocabularies();
  write_word_pairs(path("c"), path("d"), 60, 5, 2, 3);
  EXPECT_EQ(run_training(config("third", {{"vocab.source", path("shared/w.spm")}, {"data.source", path("c")}, {"data.target", path("d")}})),
            0);
  const std::string theirs = directory_hash(path("shared"));
  EXPECT_THAT(error<ConfigError>([&] { directory.begin(v); }), HasSubstr("another run has made this vocabulary in the meantime"));
  EXPECT_EQ(directory_hash(path("shared")), theirs);
}

TEST_F(RunOwnership, TextInTheDirectoryOfTokensIsNeverRemoved) {
  fs::create_directories(path("project/data"));
  for (const char* name : {"train.a", "train.b"}) fs::copy(path(name + 6), path("project/data/") + name);
  const std::string before = directory_hash(directory_);
  const std::vector<Override> there{{"data.source", path("project/data/train.a")}, {"data.target", path("project/data/train.b")}};
  EXPECT_THAT(error<ConfigError>([&] { run_training(config("project", there)); }),
              HasSubstr(path("project/data") + ": contains train.a, but this is where the tokens"));
  EXPECT_EQ(directory_hash(directory_), before);
  // A run that has begun goes on, but does not put new tokens in the place of what is there.
  EXPECT_EQ(run_training(config("run")), 0);
  std::ofstream(path("run/data/notes")) << "mine\n";
  EXPECT_EQ(run_training(config("run", {{"train.max-steps", "5"}})), 0);
  fs::last_write_time(path("a"), fs::file_time_type::clock::now());
  EXPECT_THAT(error<ConfigError>([&] {
                run_training(config("run", {{"train.max-steps", "6"}}));
              }),
              HasSubstr("contains notes, but this is where the tokens"));
  EXPECT_TRUE(fs::exists(path("run/data/notes")));
}

}  // namespace
}  // namespace starling
