// Training end to end on a few hundred sentences: it learns, it resumes bit for bit, it stops on signals and on numbers that are not
// finite.
#include "run/trainer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/random.h"
#include "base/sha256.h"
#include "base/text_files.h"
#include "decode/translator.h"
#include "storage/checkpoint.h"
#include "storage/safetensors.h"
#include "tests/emulated/slow.h"
#include "tests/run/trainer_fixture.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr, testing::Not;

TEST_F(TrainerTest, AContinuedRunEqualsAnUninterruptedOneBitForBit) {
  const std::vector<int64_t> stops = unless_emulated<std::vector<int64_t>>({7, 13, 20, 30}, {3, 8, 10});
  const auto with = [&](const std::string& run, int64_t steps) {
    Config c = config(run);
    c.train.max_steps = steps;  // on which only the cosine schedule depends
    c.checkpoint.every = c.valid.every = unless_emulated(10, 5);
    return c;
  };
  EXPECT_EQ(run_training(with("whole", stops.back())), 0);
  for (const int64_t stop : stops) EXPECT_EQ(run_training(with("parts", stop)), 0);
  const std::string last = fmt::format("{:08}", stops.back());
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", last, file), hash("parts", last, file)) << file;
  EXPECT_EQ(run_training(with("parts", stops.back())), 0);  // nothing to do
}

// The sum of a gradient is cut into the same parts as before, whatever memory is free today.
TEST_F(TrainerTest, ARunGoesOnWithTheMicroBatchesItBeganWith) {
  const auto with = [&](const std::string& run, int64_t steps, int64_t micro_tokens) {
    Config c = config(run);
    c.train.max_steps = steps, c.train.micro_batch_tokens = micro_tokens;
    return c;
  };
  EXPECT_EQ(run_training(with("whole", 20, 50)), 0);
  EXPECT_EQ(run_training(with("parts", 10, 50)), 0);
  EXPECT_EQ(run_training(with("parts", 20, 0)), 0);
  EXPECT_EQ(run_training(with("otherwise", 20, 0)), 0);
  EXPECT_EQ(hash("whole", "00000020", "model.safetensors"), hash("parts", "00000020", "model.safetensors"));
  EXPECT_NE(hash("whole", "00000020", "model.safetensors"), hash("otherwise", "00000020", "model.safetensors")) << "no difference to find";
}

TEST_F(TrainerTest, MuonIsContinuedBitForBit) {
  const auto with = [&](const std::string& run, int64_t steps) {
    Config c = config(run);
    c.train.max_steps = steps, c.train.optimizer.optimizer = OptimizerKind::muon, c.train.optimizer.weight_decay = 0.1;
    return c;
  };
  EXPECT_EQ(run_training(with("whole", 20)), 0);
  for (const int64_t stop : {7, 13, 20}) EXPECT_EQ(run_training(with("parts", stop)), 0);
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000020", file), hash("parts", "00000020", file)) << file;
}

// Whichever limit is given is the one that ends the run; train.max-steps has no say then.
TEST_F(TrainerTest, OtherLimitsNeedNoMaxSteps) {
  Config c = config("epochs");
  c.train.max_steps = 0, c.train.max_epochs = 1, c.train.optimizer.schedule = RateSchedule::linear;
  EXPECT_EQ(run_training(c), 0);
  const auto log = [&](const std::string& run) {
    std::ifstream in(path(run) + "/train.log");
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  EXPECT_THAT(log("epochs"), HasSubstr("complete: train.max-epochs 1: "));
  c = config("minutes");
  c.train.max_steps = 0, c.train.max_minutes = 0.02, c.train.optimizer.schedule = RateSchedule::linear;
  c.train.optimizer.sgd_after = 2000000;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_THAT(log("minutes"),
              HasSubstr("then linear, towards 0 after 0.02 minutes, but only until update 2000000: then plain SGD with 0.5\n"));
  EXPECT_THAT(log("minutes"), HasSubstr("complete: train.max-minutes 0.02: "));
}

TEST_F(TrainerTest, TheBoundOfStatesIsContinuedBitForBitAndLiesInTheCheckpoint) {
  const auto with = [&](const std::string& run, int64_t steps) {
    Config c = config(run);
    const double dropout = c.model.dropout;
    c.model = model_preset("gnmt-small");
    c.model.width = 16, c.model.dropout = dropout, c.model.tanh_output = false, c.model.clip = 0.5;
    c.train.clip_start = 4, c.train.clip_steps = 21, c.train.max_steps = steps;
    return c;
  };
  EXPECT_EQ(run_training(with("whole", 30)), 0);
  for (const int64_t stop : {7, 20, 30}) EXPECT_EQ(run_training(with("parts", stop)), 0);
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000030", file), hash("parts", "00000030", file)) << file;
  const auto files = real_file_system();
  const auto bound = [&](const std::string& run, const char* step) {
    return describe_model(*files, path(run) + "/checkpoints/step-" + step).config.clip;
  };
  EXPECT_NEAR(bound("parts", "00000020"), 4 * std::pow(0.5 / 4, 19.0 / 20), 1e-6);
  EXPECT_EQ(bound("whole", "00000030"), 0.5);
  // The tighter the bound, the more is clipped; the records tell.
  std::vector<double> shares;
  std::ifstream events(path("whole") + "/events.jsonl");
  for (std::string line; std::getline(events, line);)
    if (const auto event = nlohmann::json::parse(line); event["type"] == "report") shares.push_back(event["clipped"].get<double>());
  ASSERT_GE(shares.size(), 2u);
  EXPECT_EQ(shares.front(), 0);
  EXPECT_GT(shares.back(), shares.front());
  EXPECT_LT(shares.back(), 1);
}

TEST_F(TrainerTest, PlainSgdKeepsNoStateAndAdamMayFollowIt) {
  Config c = config("run");
  c.train.max_steps = 10, c.train.optimizer.optimizer = OptimizerKind::sgd, c.train.optimizer.learning_rate = 0.1,
  c.train.optimizer.ema = 0;
  EXPECT_EQ(run_training(c), 0);
  const auto shard = [&](const char* step) { return path("run") + "/checkpoints/step-" + step + "/rank-0.safetensors"; };
  EXPECT_FALSE(fs::exists(shard("00000010")));
  c.train.max_steps = 20, c.train.optimizer.optimizer = OptimizerKind::adam;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_GT(fs::file_size(shard("00000020")), 10000u);
}

// Moments that are not taken over begin with the update that they are first used for: a first step of Adam moves each element by the rate,
// whatever its gradient is.
TEST_F(TrainerTest, MomentsThatBeginAnewAreCorrectedFromThere) {
  const auto files = real_file_system();
  const auto values = [&](int64_t step) {
    const SafetensorsFile file(*files, path("run") + fmt::format("/checkpoints/step-{:08}/model.safetensors", step));
    std::vector<float> all;
    for (const NamedBytes& t : file.tensors()) {
      all.resize(all.size() + t.data.size() / 4);
      std::memcpy(all.data() + all.size() - t.data.size() / 4, t.data.data(), t.data.size());
    }
    return all;
  };
  Config c = config("run");
  c.train.optimizer.ema = 0, c.train.optimizer.schedule = RateSchedule::constant;
  const double rate = c.train.optimizer.learning_rate;
  int64_t step = 10;
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::muon, OptimizerKind::adamw}) {
    c.train.optimizer.optimizer = optimizer, c.train.max_steps = step;
    EXPECT_EQ(run_training(c), 0);
    if (optimizer == OptimizerKind::adam || optimizer == OptimizerKind::adamw) {
      const std::vector<float> before = values(step - 1), after = values(step);
      double most = 0;
      size_t moved = 0, whole = 0;
      for (size_t i = 0; i < before.size(); ++i) {
        const double d = std::abs(after[i] - before[i]);
        most = std::max(most, d), moved += d > 0, whole += d > 0.99 * rate;
      }
      EXPECT_NEAR(most / rate, 1, 1e-2) << word(optimizer);
      EXPECT_GT(static_cast<double>(whole), 0.8 * static_cast<double>(moved)) << word(optimizer);
    }
    ++step;
  }
  c.train.max_steps = step;  // AdamW's moments are Adam's
  c.train.optimizer.optimizer = OptimizerKind::adam;
  EXPECT_EQ(run_training(c), 0);
  std::ifstream in(path("run") + "/train.log");
  const std::string log((std::istreambuf_iterator<char>(in)), {});
  for (const auto& [optimizer, first] : {std::pair("adam", 11), std::pair("muon", 12), std::pair("adamw", 13)})
    EXPECT_THAT(log, HasSubstr(fmt::format("the checkpoint has no moments of train.optimizer {}: they start from zero at update {}\n",
                                           optimizer, first)));
  EXPECT_THAT(log, Not(HasSubstr("start from zero at update 14")));
  EXPECT_THAT(log, Not(HasSubstr("no moments of train.optimizer sgd")));
}

TEST_F(TrainerTest, ASignalSavesAndTheSameCommandContinues) {
  Config c = config("whole");
  c.train.max_steps = 400, c.valid.every = 1000, c.checkpoint.every = 1000;
  EXPECT_EQ(run_training(c), 0);
  c.train.output = path("parts");
  std::thread killer([&] {
    // Once training runs (its first log line is out), stop it.
    for (int i = 0; i < 2000; ++i) {
      std::ifstream log(path("parts/train.log"));
      const std::string text((std::istreambuf_iterator<char>(log)), {});
      if (text.find("step 5 ") != std::string::npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(getpid(), SIGTERM);
  });
  EXPECT_EQ(run_training(c), 128 + SIGTERM);
  killer.join();
  EXPECT_TRUE(latest_checkpoint(*real_file_system(), path("parts")).has_value());
  EXPECT_EQ(run_training(c), 0);
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000400", file), hash("parts", "00000400", file)) << file;
}

TEST_F(TrainerTest, LearnsATaskAndTheBestCheckpointTranslatesIt) {
  Config c = config("learn");
  write_corpus(path("train.a"), path("train.b"), 2000, 1, 4);
  write_corpus(path("valid.a"), path("valid.b"), 20, 2, 4);
  c.model.width = 64, c.model.feed_forward = 256, c.model.dropout = c.model.attention_dropout = c.model.feed_forward_dropout = 0;
  c.train.max_steps = 250, c.train.batch_tokens = 400, c.train.threads = 1, c.train.optimizer.warmup = 50, c.train.optimizer.ema = 0;
  c.valid.every = c.checkpoint.every = 125;
  EXPECT_EQ(run_training(c), 0);
  const auto files = real_file_system();
  const auto backend = make_backend("cpu:f32", 2);
  const LoadedModel loaded = load_model(*files, path("learn"), *backend);
  Translator translator(*loaded.model, loaded.description.vocabularies, loaded.description.search);
  const std::vector<std::string> lines{"red dog", "", "cat sees big house"};
  const auto result = translator.translate(lines);
  EXPECT_EQ(result[0][0].text, "Hund rot");
  EXPECT_EQ(result[1][0].text, "");
  EXPECT_EQ(result[2][0].text, "Haus gross sieht Katze");
}

TEST_F(TrainerTest, ALossThatIsNotFiniteStopsBeforeTheUpdateAndNamesTheBatch) {
  Config c = config("diverge");
  c.train.max_steps = 10, c.checkpoint.every = 5;
  EXPECT_EQ(run_training(c), 0);
  const std::string before = hash("diverge", "00000010", "model.safetensors");
  c.train.max_steps = 100, c.train.optimizer.learning_rate = 1e30, c.train.optimizer.clip_norm = 0, c.train.optimizer.warmup = 0;
  try {
    run_training(c);
    FAIL() << "went on with numbers that are not finite";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("batch"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("not finite"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("a lower train.learning-rate, a longer train.warmup or with train.clip-norm 1; if"),
              std::string::npos)
        << e.what();
    EXPECT_EQ(std::string(e.what()).find("f32"), std::string::npos) << "this is f32 already: " << e.what();
  }
  EXPECT_EQ(hash("diverge", "00000010", "model.safetensors"), before);
}

TEST_F(TrainerTest, ASignalAtTheLastUpdateLeavesItsValidationToTheNextStart) {
  Config c = config("whole");
  c.train.max_steps = 10, c.valid.every = 4, c.checkpoint.every = 5, c.valid.metrics = {"cross-entropy"};
  for (int start = 0; start < 2; ++start) EXPECT_EQ(run_training(c), 0);  // the last checkpoint knows of the last validation
  c.train.output = path("parts");
  TrainingWatch watch;
  watch.updated = [](int64_t step, int64_t, int64_t) {
    if (step == 9) std::raise(SIGTERM);  // heeded with the next update
  };
  World world = make_local_world();
  EXPECT_EQ(run_training(c, world, watch), 128 + SIGTERM);
  const auto validations = [&](const std::string& run) {
    std::ifstream events(path(run) + "/events.jsonl");
    std::vector<std::string> all;
    for (std::string line; std::getline(events, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event.at("type") == "validation") all.push_back(fmt::format("{} {}", event.at("step").dump(), event.at("scores").dump()));
    }
    return all;
  };
  EXPECT_EQ(validations("parts").size(), 2u);
  for (int start = 0; start < 2; ++start) {  // the second one finds nothing to do
    EXPECT_EQ(run_training(c), 0);
    EXPECT_EQ(validations("parts"), validations("whole"));
    EXPECT_EQ(validations("parts").size(), 3u);
  }
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000010", file), hash("parts", "00000010", file)) << file;
}

// In the middle of a run as at its end: the validation is not waited for, and is made when the run goes on, from the same parameters.
TEST_F(TrainerTest, ASignalDuringAValidationGivesItUpUntilTheRunGoesOn) {
  Config c = config("whole");
  c.train.max_steps = 10, c.valid.every = 4, c.checkpoint.every = 5, c.valid.metrics = {"bleu", "cross-entropy"};
  EXPECT_EQ(run_training(c), 0);
  const auto validations = [&](const std::string& run) {
    std::ifstream events(path(run) + "/events.jsonl");
    std::vector<std::string> all;
    for (std::string line; std::getline(events, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event.at("type") == "validation")
        all.push_back(fmt::format("{} {} {}", event.at("step").dump(), event.at("scores").dump(), event.at("best").dump()));
    }
    return all;
  };
  EXPECT_EQ(validations("whole").size(), 3u);
  c.train.output = path("parts");
  int64_t last = 0;
  size_t made = 0;
  for (const int64_t at : {4, 8, 10}) {
    TrainingWatch watch;
    watch.updated = [&](int64_t step, int64_t, int64_t) { last = step; };
    watch.paused = [&, raised = false](bool) mutable {  // before a validation and other things
      if (last == at && !std::exchange(raised, true)) std::raise(SIGTERM);
    };
    World world = make_local_world();
    EXPECT_EQ(run_training(c, world, watch), 128 + SIGTERM) << at;
    EXPECT_EQ(last, at);
    EXPECT_EQ(validations("parts").size(), made++) << at;  // that of `at` is missing
    std::ifstream in(path("parts/train.log"));
    const std::string log((std::istreambuf_iterator<char>(in)), {});
    EXPECT_THAT(log, HasSubstr(fmt::format("the validation of update {} was interrupted; it will be repeated when the run resumes\n", at)));
    EXPECT_TRUE(std::filesystem::exists(path(fmt::format("parts/checkpoints/step-{:08}", at))));
  }
  for (int start = 0; start < 2; ++start) {  // the second one finds nothing to do
    EXPECT_EQ(run_training(c), 0);
    EXPECT_EQ(validations("parts"), validations("whole"));
  }
  for (const char* file : {"model.safetensors", "rank-0.safetensors"})
    EXPECT_EQ(hash("whole", "00000010", file), hash("parts", "00000010", file)) << file;
}

TEST_F(TrainerTest, RefusesToContinueAsAnotherRun) {
  Config c = config("run");
  c.train.max_steps = 10;
  EXPECT_EQ(run_training(c), 0);
  c.train.max_steps = 20;
  const auto refused = [&](const char* what, auto change) -> std::string {
    Config other = c;
    change(other);
    try {
      run_training(other);
      ADD_FAILURE() << what << " was accepted";
      return "";
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find("started with"), std::string::npos) << e.what();
      return e.what();
    }
  };
  refused("another seed", [](Config& o) { o.train.seed = 2; });
  refused("another batch", [](Config& o) { o.train.batch_tokens = 300; });
  refused("other heads of equal shape", [](Config& o) { o.model.heads = 2; });
  const std::string norm = refused("another norm", [](Config& o) { o.model.norm = NormPlace::post; });
  EXPECT_NE(norm.find("\n  norm: pre\n"), std::string::npos) << norm;
  EXPECT_NE(norm.find("\n  norm: post\n"), std::string::npos) << norm;
  EXPECT_EQ(norm.find("width"), std::string::npos) << "only what differs: " << norm;
  write_corpus(path("train.a"), path("train.b"), 600, 3);
  refused("other text of equal size", [](Config&) {});
  write_corpus(path("train.a"), path("train.b"), 600, 1);
  EXPECT_EQ(run_training(c), 0);  // the same text again, though its files are new
}

TEST_F(TrainerTest, LeavesAModelsDirectoryAlone) {
  Config c = config("run");
  c.train.max_steps = 10;
  EXPECT_EQ(run_training(c), 0);
  const std::string model = path("run/checkpoints/step-00000010");
  const auto listing = [&] {
    std::map<std::string, std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(model)) files[file.path().filename()] = read_text_file(file.path());
    return files;
  };
  const auto before = listing();
  c.train.output = model;
  try {
    run_training(c);
    ADD_FAILURE() << "a model's directory was taken for a run's";
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("set train.initial-model to " + model), std::string::npos) << e.what();
  }
  EXPECT_EQ(listing(), before);
}

TEST_F(TrainerTest, TheAverageMayBeTurnedOnAndOff) {
  Config c = config("whole");
  c.train.max_steps = 20, c.train.optimizer.ema = 0;
  EXPECT_EQ(run_training(c), 0);
  c.train.output = path("parts");
  for (auto [steps, ema] : {std::pair(7, 0.9), {14, 0.0}, {20, 0.0}}) {  // averaging does not touch the parameters themselves
    c.train.max_steps = steps, c.train.optimizer.ema = ema;
    EXPECT_EQ(run_training(c), 0);
  }
  EXPECT_EQ(hash("whole", "00000020", "model.safetensors"), hash("parts", "00000020", "model.safetensors"));
}

TEST_F(TrainerTest, EarlyStoppingStays) {
  Config c = config("learned");
  c.train.max_steps = 20, c.valid.metrics = {"cross-entropy"};
  EXPECT_EQ(run_training(c), 0);
  // A rate that only harms, and a model that is validated before it does.
  c.train.output = path("stop"), c.train.initial_model = path("learned"), c.train.max_steps = 100;
  c.train.optimizer.learning_rate = 1, c.train.optimizer.warmup = 1, c.train.optimizer.ema = 0;
  c.valid.every = 2, c.valid.early_stopping = 2;
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(latest_checkpoint(*real_file_system(), path("stop"))->step, 4);  // best at 0, stalled at 2 and 4
  EXPECT_EQ(run_training(c), 0);
  EXPECT_EQ(latest_checkpoint(*real_file_system(), path("stop"))->step, 4);
}

TEST_F(TrainerTest, ThePeakOfVocabularyTrainingIsTold) {
  Config c = config("run");
  c.train.max_steps = 1;
  EXPECT_EQ(run_training(c), 0);
  rusage children{};  // this process's only child trained the vocabulary
  getrusage(RUSAGE_CHILDREN, &children);
  const int64_t mib = children.ru_maxrss >> 10;
  EXPECT_GT(mib, 0);
  EXPECT_NE(read_text_file(path("run/train.log")).find(fmt::format(" planned), vocabulary training {} MiB; ", mib)), std::string::npos);
  EXPECT_NE(read_text_file(path("run/events.jsonl")).find(fmt::format(R"("peak_child_memory_mib":{}}})", mib)), std::string::npos);
}

// Whatever keeps the record of the failure from being written (here: no file may grow any more), the failure itself is told.
TEST_F(TrainerTest, AFailureIsToldThoughItsRecordCannotBeWritten) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  TrainingWatch watch;
  watch.updated = [&](int64_t step, int64_t, int64_t) {
    if (step < 3) return;
    const rlimit none{1, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    throw DataError("corpus.de:17: this line is a test");
  };
  World world = make_local_world();
  std::string error;
  try {
    run_training(config("run"), world, watch);
  } catch (const std::exception& e) {
    error = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "corpus.de:17: this line is a test");
  EXPECT_EQ(read_text_file(path("run/events.jsonl")).find(R"("type":"stop")"), std::string::npos) << "it could be written";
}

}  // namespace
}  // namespace starling
