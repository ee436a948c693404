// What a checkpoint promises, tried at every point where it could break: a crash or an error at each file operation of a save, with four
// ideas of what the disk still holds afterwards, leaves the old checkpoint or the new one, whole; damage is noticed and passed over.
#include "storage/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/files/memory_files.h"
#include "tests/storage/checkpoint_parts.h"

namespace starling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string latest_content(FileSystem& files) {
  const auto loaded = latest_checkpoint(files, "run");
  return loaded ? content_of(files, *loaded) : "none";
}
std::string best_content(FileSystem& files) {
  const auto loaded = best_checkpoint(files, "run");
  return loaded ? content_of(files, *loaded) : "none";
}

TEST(Checkpoint, SavesAndFindsTheLatest) {
  MemoryFileSystem files;
  CheckpointStore store(files, "run", 5);
  EXPECT_FALSE(store.latest());
  EXPECT_FALSE(store.best());
  store.save(900, parts("a"));
  store.save(1000, parts("b"));
  store.save_best(900, parts("best"));
  ASSERT_TRUE(store.latest());
  EXPECT_EQ(store.latest()->step, 1000);
  EXPECT_EQ(store.latest()->directory, "run/checkpoints/step-00001000");
  EXPECT_EQ(latest_content(files), "b");
  EXPECT_EQ(store.best()->step, 900);
  EXPECT_EQ(best_content(files), "best");
  EXPECT_THAT(files.list("run"), ElementsAre("best", "checkpoints"));
  EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000900", "step-00001000"));
  EXPECT_THAT(files.list("run/best"), ElementsAre("empty", "manifest.json", "state.json", "weights.bin"));
  EXPECT_THROW(store.latest()->path("other"), DataError);
  store.save(1000, parts("c"));
  EXPECT_EQ(latest_content(files), "c");
  store.save(123456789012, parts("d"));
  EXPECT_EQ(store.latest()->directory, "run/checkpoints/step-123456789012");
}

TEST(Checkpoint, TensorsGoThroughUnchanged) {
  MemoryFileSystem files;
  const std::vector<float> values = {1, 2, 3, 4};
  CheckpointStore store(files, "run", 1);
  const std::vector<NamedBytes> tensors = {{"w", "F32", {2, 2}, std::as_bytes(std::span(values))}};
  store.save(1, std::vector{safetensors_part("model.safetensors", tensors, {{"k", "v"}})});
  const SafetensorsFile file(files, store.latest()->path("model.safetensors"));
  EXPECT_TRUE(std::ranges::equal(file.at("w").data, std::as_bytes(std::span(values))));
  EXPECT_EQ(file.metadata().at("k"), "v");
}

struct Scenario {
  const char* name;
  std::function<void(MemoryFileSystem&)> before;
  std::function<void(MemoryFileSystem&)> act;  // the operation that is hit
  std::vector<std::string> latest, best;       // what may be there afterwards; the last is what must be there if it succeeds
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

std::vector<Scenario> scenarios() {
  const auto save = [](int64_t step, std::string content) {
    return [=](MemoryFileSystem& files) { CheckpointStore(files, "run", 2).save(step, parts(content)); };
  };
  const auto best = [](std::string content) {
    return [=](MemoryFileSystem& files) { CheckpointStore(files, "run", 2).save_best(1, parts(content)); };
  };
  const auto both = [](auto a, auto b) { return [=](MemoryFileSystem& files) { a(files), b(files); }; };
  const auto two = both(save(1, "one"), save(2, "two"));
  return {{"First", [](MemoryFileSystem&) {}, save(1, "one"), {"none", "one"}, {"none"}},
          {"Next", save(1, "one"), save(2, "two"), {"one", "two"}, {"none"}},
          {"NextWithPruning", two, save(3, "three"), {"two", "three"}, {"none"}},
          {"SameStepAgain", two, save(2, "new"), {"two", "new"}, {"none"}},
          {"FirstBest", two, best("best"), {"two"}, {"none", "best"}},
          {"NewBest", both(two, best("best")), best("better"), {"two"}, {"best", "better"}},
          {"OldStepAgain", both(two, best("best")), save(1, "uno"), {"two"}, {"best"}}};
}

class CheckpointCrash : public ::testing::TestWithParam<std::tuple<Scenario, Surviving, bool>> {};

// Hits operation k = 1, 2, ... of the scenario until it gets through.
TEST_P(CheckpointCrash, AtEveryOperationLeavesOldOrNew) {
  const auto& [scenario, surviving, can_exchange] = GetParam();
  const int seeds = surviving == Surviving::random ? 20 : 1;
  for (int seed = 0; seed < seeds; ++seed) {
    bool crashed = true;
    for (int64_t k = 1; crashed; ++k) {
      SCOPED_TRACE(fmt::format("{}: crash at operation {}, seed {}", scenario.name, k, seed));
      MemoryFileSystem files;
      scenario.before(files);
      files.set_faults({.at = k, .fault = Fault::crash, .surviving = surviving, .can_exchange = can_exchange, .seed = uint64_t(seed)});
      try {
        scenario.act(files);
        crashed = false;
      } catch (const SimulatedCrash&) {
      }
      files.reboot();
      const std::string latest = latest_content(files), best = best_content(files);  // as another program sees it
      EXPECT_THAT(scenario.latest, ::testing::Contains(latest));
      EXPECT_THAT(scenario.best, ::testing::Contains(best));
      CheckpointStore store(files, "run", 2);  // as the restarted trainer sees it
      EXPECT_EQ(latest_content(files), latest);
      EXPECT_EQ(best_content(files), best);
      for (const char* directory : {"run", "run/checkpoints"}) {
        for (const std::string& name : files.list(directory)) EXPECT_NE(name[0], '.') << name << " was left over";
      }
      for (const std::string& name : files.list("run/checkpoints")) verify_directory(files, "run/checkpoints/" + name);
      if (!crashed) {
        EXPECT_EQ(latest, scenario.latest.back());
        EXPECT_EQ(best, scenario.best.back());
        EXPECT_GT(k, 10);
      }
      store.save(10, parts("ten"));  // and it can go on
      store.save_best(10, parts("top"));
      EXPECT_EQ(latest_content(files) + best_content(files), "tentop");
      ASSERT_FALSE(HasFailure());
    }
  }
}

// The same with an error in place of the crash: it is reported, and the program may simply try again.
class CheckpointError : public ::testing::TestWithParam<std::tuple<Scenario, bool>> {};
TEST_P(CheckpointError, AtEveryOperationLeavesOldOrNew) {
  const auto& [scenario, can_exchange] = GetParam();
  for (const Fault fault : {Fault::io_error, Fault::short_write}) {
    for (int64_t k = 1;; ++k) {
      SCOPED_TRACE(fmt::format("{}: error at operation {}", scenario.name, k));
      MemoryFileSystem files;
      scenario.before(files);
      files.set_faults({.at = k, .fault = fault, .can_exchange = can_exchange});
      try {
        scenario.act(files);
      } catch (const IoError&) {
      }
      const bool reached = files.operations() >= k;
      files.set_faults({.can_exchange = can_exchange});
      EXPECT_THAT(scenario.latest, ::testing::Contains(latest_content(files)));
      EXPECT_THAT(scenario.best, ::testing::Contains(best_content(files)));
      scenario.act(files);
      EXPECT_EQ(latest_content(files), scenario.latest.back());
      EXPECT_EQ(best_content(files), scenario.best.back());
      ASSERT_FALSE(HasFailure());
      if (!reached) break;
    }
  }
}

// Crashes in operation k of `act` if it has that many; true if it crashed.
bool crash_at(MemoryFileSystem& files, const FaultPlan& plan, const std::function<void(MemoryFileSystem&)>& act) {
  files.set_faults(plan);
  try {
    act(files);
    return false;
  } catch (const SimulatedCrash&) {
    return true;
  }
}

// The program is killed in a save; the next one cleans up, and the power fails while it does.
TEST(Checkpoint, APowerCutWhileCleaningUpAfterAKillLeavesOldOrNew) {
  const auto save = [](MemoryFileSystem& files) { CheckpointStore(files, "run", 2).save(1, parts("new")); };
  const auto open = [](MemoryFileSystem& files) { CheckpointStore(files, "run", 2); };
  for (const bool can_exchange : {true, false}) {
    bool killed = true;
    for (int64_t k = 1; killed; ++k) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        bool cut = true;
        for (int64_t m = 1; cut; ++m) {
          SCOPED_TRACE(fmt::format("killed at operation {}, power cut at {}, seed {}, exchange {}", k, m, seed, can_exchange));
          MemoryFileSystem files;
          CheckpointStore(files, "run", 2).save(1, parts("old"));
          killed = crash_at(files, {.at = k, .fault = Fault::crash, .can_exchange = can_exchange}, save);
          files.restart_program();
          cut = crash_at(files, {.at = m, .fault = Fault::crash, .surviving = Surviving::random, .seed = seed}, open);
          files.reboot();
          ASSERT_THAT((std::vector<std::string>{"old", "new"}), ::testing::Contains(latest_content(files)));
        }
      }
    }
  }
}

// After a failed save the same store can be used on, with or without trying that step again, and leaves nothing lying about.
TEST(Checkpoint, AStoreGoesOnAfterAnErrorAtAnyOperation) {
  for (const bool can_exchange : {true, false}) {
    for (const bool again : {true, false}) {
      bool failed = true;
      for (int64_t k = 1; failed; ++k) {
        SCOPED_TRACE(fmt::format("error at operation {}, exchange {}, again {}", k, can_exchange, again));
        MemoryFileSystem files;
        std::vector<std::string> reports;
        CheckpointStore store(files, "run", 2, [&](const std::string& line) { reports.push_back(line); });
        store.save(1, parts("one"));
        store.save(2, parts("two"));
        files.set_faults({.at = k, .can_exchange = can_exchange});
        try {
          store.save(2, parts("new"));
        } catch (const IoError&) {
        }
        failed = files.operations() >= k;
        files.set_faults({.can_exchange = can_exchange});
        reports.clear();
        const std::vector<Part> other = {text_part("other", "content")};
        if (again) {
          store.save(2, other);
          EXPECT_THAT(files.list(store.directory(2)), ElementsAre("manifest.json", "other"));
          EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000001", "step-00000002"));
        }
        for (int64_t step = 3; step <= 5; ++step) store.save(step, other);
        EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000004", "step-00000005"));
        EXPECT_THAT(reports, IsEmpty());
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

std::string case_name(const std::tuple<Scenario, Surviving, bool>& parameters) {
  static const char* const names[] = {"SyncedOnly", "Everything", "NamesOnly", "Random"};
  const auto& [scenario, surviving, can_exchange] = parameters;
  return fmt::format("{}{}{}", scenario.name, names[int(surviving)], can_exchange ? "" : "WithoutExchange");
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointCrash,
                         ::testing::Combine(::testing::ValuesIn(scenarios()),
                                            ::testing::Values(Surviving::synced_only, Surviving::everything, Surviving::names_only,
                                                              Surviving::random),
                                            ::testing::Bool()),
                         [](const auto& info) { return case_name(info.param); });

INSTANTIATE_TEST_SUITE_P(All, CheckpointError, ::testing::Combine(::testing::ValuesIn(scenarios()), ::testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param).name, std::get<1>(info.param) ? "" : "WithoutExchange");
                         });

TEST(Checkpoint, EveryDamagedByteIsNoticed) {
  MemoryFileSystem files;
  std::vector<std::string> reports;
  CheckpointStore store(files, "run", 3, [&](const std::string& line) { reports.push_back(line); });
  store.save(1, parts("old"));
  store.save(2, parts("new"));
  for (const std::string& name : files.list(store.directory(2))) {
    const std::string path = join_path(store.directory(2), name), sound = files.read_file(path);
    for (size_t at = 0; at < sound.size(); ++at) {
      std::string damaged = sound;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      files.write_file(path, damaged);
      const std::string found = latest_content(files);
      EXPECT_TRUE(found == "old" || (found == "new" && sound[at] <= ' ')) << name << " byte " << at;
      files.write_file(path, sound.substr(0, at));
      EXPECT_EQ(latest_content(files), at + 1 == sound.size() && name == "manifest.json" ? "new" : "old") << name << " cut at " << at;
    }
    files.write_file(path, sound);
    EXPECT_EQ(latest_content(files), "new");
    files.remove(path);
    EXPECT_EQ(latest_content(files), "old");
    EXPECT_TRUE(store.latest());
    EXPECT_THAT(reports.back(), HasSubstr("step-00000002"));
    files.write_file(path, sound);
  }
}

TEST(Checkpoint, AManifestOfAnotherStepOrFromOutsideIsRefused) {
  MemoryFileSystem files;
  CheckpointStore store(files, "run", 3);
  store.save(1, parts("one"));
  files.rename(store.directory(1), store.directory(7));
  EXPECT_EQ(latest_content(files), "none");
  for (const char* text : {"", "[]", "null", "{}", "{\"schema\":\"starling-checkpoint-1\"}", "{\"schema\":3}"}) {
    files.write_file(store.directory(7) + "/manifest.json", text);
    EXPECT_THROW(verify_directory(files, store.directory(7)), DataError) << text;
  }
  files.write_file(store.directory(7) + "/manifest.json", "{\"a\":" + std::string(1000000, '['));
  EXPECT_THROW(verify_directory(files, store.directory(7)), DataError);
}

TEST(Checkpoint, PruningKeepsTheNewestSoundOnes) {
  MemoryFileSystem files;
  CheckpointStore store(files, "run", 2);
  store.save_best(1, parts("best"));
  for (int64_t step = 1; step <= 4; ++step) store.save(step, parts(fmt::format("s{}", step)));
  EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000003", "step-00000004"));
  EXPECT_EQ(best_content(files), "best");
}

TEST(Checkpoint, PruningCountsNoBrokenOnes) {
  MemoryFileSystem files;
  CheckpointStore(files, "run", 9).save(1, parts("one"));
  CheckpointStore(files, "run", 9).save(5, parts("five"));
  CheckpointStore(files, "run", 9).save(6, parts("six"));
  files.write_file("run/checkpoints/step-00000005/weights.bin", "rotten content");
  files.remove("run/checkpoints/step-00000006/manifest.json");
  std::vector<std::string> reports;
  CheckpointStore store(files, "run", 1, [&](const std::string& line) { reports.push_back(line); });
  store.prune();
  EXPECT_EQ(latest_content(files), "one");
  store.save(3, parts("three"));  // training went on from step 1
  EXPECT_EQ(latest_content(files), "three");
  EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000003", "step-00000005", "step-00000006"));
  store.save(5, parts("good"));
  store.save(6, parts("better"));
  EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000006"));
}

TEST(Checkpoint, TheLastSavedStaysEvenIfNewerOnesExist) {
  MemoryFileSystem files;
  CheckpointStore store(files, "run", 1);
  store.save(9, parts("nine"));
  store.save(2, parts("two"));
  EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000002", "step-00000009"));
}

TEST(Checkpoint, PruningIsTriedAgain) {
  MemoryFileSystem files;
  std::vector<std::string> reports;
  CheckpointStore store(files, "run", 1, [&](const std::string& line) { reports.push_back(line); });
  store.save(1, parts("one"));
  files.set_faults({});
  store.save(2, parts("two"));
  const int64_t operations = files.operations();
  EXPECT_THAT(reports, IsEmpty());
  files.set_faults({.at = operations});  // the last removal
  store.save(3, parts("three"));
  EXPECT_THAT(reports, IsEmpty());
  EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000003"));
  EXPECT_EQ(latest_content(files), "three");
}

TEST(Checkpoint, AFullDiskKeepsTheOldAndFreesTheSpace) {
  int refused = 0, saved = 0;
  for (int64_t spare = 0; spare < 1600; spare += 7) {
    MemoryFileSystem files;
    CheckpointStore store(files, "run", 2);
    store.save(1, parts("one"));
    int64_t used = 0;
    for (const std::string& name : files.list(store.directory(1))) used += int64_t(files.info(join_path(store.directory(1), name)).size);
    files.set_faults({.capacity_bytes = used + spare});
    try {
      store.save(2, parts(std::string(250, 'x')));
      EXPECT_EQ(store.latest()->step, 2);
      ++saved;
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("no space left on the disk of run/checkpoints/.tmp-step-00000002/"));
      EXPECT_EQ(latest_content(files), "one");
      EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000001"));
      ++refused;
    }
  }
  EXPECT_GT(refused, 150);
  EXPECT_GT(saved, 0);
}

TEST(Checkpoint, AFailingWriterLeavesNothing) {
  MemoryFileSystem files;
  CheckpointStore store(files, "run", 2);
  const std::vector<Part> bad = {{"x", [](ByteSink&) { throw DataError("no"); }}};
  EXPECT_THROW(store.save(1, bad), DataError);
  EXPECT_THAT(files.list("run/checkpoints"), IsEmpty());
  for (const char* name : {"", "a/b", ".hidden", "manifest.json"}) {
    EXPECT_THROW(store.save(1, std::vector{text_part(name, "x")}), InternalError) << name;
  }
  EXPECT_THROW(store.save(1, std::vector{text_part("a", "x"), text_part("a", "y")}), InternalError);
  EXPECT_THROW(CheckpointStore(files, "run", 0), ConfigError);
}

TEST(Checkpoint, PublishingReplacesOnlyItsOwn) {
  MemoryFileSystem files;
  files.make_directories("home/model");
  publish_directory(files, "home/model", 0, parts("one"));
  publish_directory(files, "home/model", 0, parts("two"));
  EXPECT_EQ(content_of(files, verify_directory(files, "home/model")), "two");
  files.write_file("home/model/thesis.txt", "years of work");
  EXPECT_THROW(publish_directory(files, "home/model", 0, parts("three")), ConfigError);
  EXPECT_EQ(files.read_file("home/model/thesis.txt"), "years of work");
  EXPECT_THROW(publish_directory(files, "home", 0, parts("three")), ConfigError);
}

TEST(Checkpoint, UpdatingReplacesAddsAndKeeps) {
  MemoryFileSystem files;
  CheckpointStore(files, "run", 2).save(7, parts("a"));
  const std::string directory = "run/checkpoints/step-00000007";
  require_updatable(files, directory);
  update_directory(files, directory, std::vector{text_part("empty", "full"), text_part("new", "n")});
  const Loaded loaded = verify_directory(files, directory);
  EXPECT_EQ(loaded.step, 7);
  EXPECT_THAT(files.list(directory), ElementsAre("empty", "manifest.json", "new", "state.json", "weights.bin"));
  EXPECT_EQ(files.read_file(loaded.path("empty")) + files.read_file(loaded.path("new")), "fulln");
  EXPECT_EQ(files.read_file(loaded.path("weights.bin")), "aaa");

  files.write_file(directory + "/weights.bin", "aab");  // damaged since: it must not get a new hash
  EXPECT_THROW(update_directory(files, directory, std::vector{text_part("new", "m")}), DataError);
  files.write_file(directory + "/weights.bin", "aaa");
  files.write_file(directory + "/notes", "mine");
  EXPECT_THROW(require_updatable(files, directory), ConfigError);
  EXPECT_THROW(update_directory(files, directory, std::vector{text_part("new", "m")}), ConfigError);
  EXPECT_EQ(files.read_file(directory + "/notes"), "mine");
}

TEST(Checkpoint, ACrashWhileUpdatingLeavesOldOrNew) {
  const auto update = [](MemoryFileSystem& files) {
    update_directory(files, "run/best", std::vector{text_part("empty", ""), text_part("state.json", "{a}"), text_part("new", "n")});
  };
  for (const Surviving surviving : {Surviving::synced_only, Surviving::everything, Surviving::names_only, Surviving::random}) {
    for (const bool can_exchange : {true, false}) {
      bool crashed = true;
      for (int64_t k = 1; crashed; ++k) {
        SCOPED_TRACE(fmt::format("crash at operation {}", k));
        MemoryFileSystem files;
        CheckpointStore(files, "run", 2).save_best(1, parts("a"));
        crashed = crash_at(files, {.at = k, .fault = Fault::crash, .surviving = surviving, .can_exchange = can_exchange}, update);
        files.reboot();
        const auto loaded = best_checkpoint(files, "run");
        ASSERT_TRUE(loaded);
        EXPECT_EQ(content_of(files, *loaded), "a");
        if (!crashed) {
          EXPECT_TRUE(loaded->has("new"));
          EXPECT_GT(k, 10);
        }
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

}  // namespace
}  // namespace starling
