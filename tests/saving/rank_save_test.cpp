// A checkpoint that several ranks write: whole or not there, whichever rank is killed or fails at whichever file operation, and whether
// the ranks see one directory or not.
#include "saving/rank_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "sim/simulate.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRanks = 3;

std::string name_of(int rank) { return fmt::format("rank-{}", rank); }

// A rank's file.
Part part_of(int rank, const std::string& content) {
  std::string text = content + std::to_string(rank);
  if (content == "long") text += std::string(size_t{9} << 20, 'x');  // three messages where it is sent
  return text_part(name_of(rank), text);
}

// The ranks save together; rank r has files[r].
void save(const std::vector<FileSystem*>& files, int64_t step, const std::string& content, const std::string& mark = "mark",
          const std::vector<Crash>& crashes = {}) {
  Scenario scenario;
  scenario.ranks = kRanks;
  scenario.crashes = crashes;
  simulate(scenario, [&](World& world) {
    const int rank = world.comm->rank();
    world.comm->set_deadline(5);
    std::optional<CheckpointStore> store;
    if (rank == 0) store.emplace(*files[0], "run", 2);
    const std::vector<Part> own{part_of(rank, content)};
    const std::string complaint =
        RankSave({*files[static_cast<size_t>(rank)], "run", store ? &*store : nullptr, step, rank == 0 ? mark : ""}, *world.comm).save(own);
    if (!complaint.empty()) throw IoError(complaint);
  });
}

// What was saved of the newest checkpoint; fails the test if the files are not of one save.
std::string latest(FileSystem& files) {
  const auto loaded = latest_checkpoint(files, "run");
  if (!loaded) return "none";
  EXPECT_EQ(loaded->files.size(), static_cast<size_t>(kRanks));
  const std::string first = files.read_file(loaded->path(name_of(0)));
  const std::string content = first.substr(0, first.find('0'));
  for (int r = 0; r < kRanks; ++r) {
    const std::string path = loaded->path(name_of(r));
    EXPECT_EQ(sha256_file(files, path), sha256_hex(content + std::to_string(r) + first.substr(content.size() + 1))) << "rank " << r;
  }
  return content;
}

TEST(RankSave, EachWritesItsOwnWhereItSeesTheDirectory) {
  MemoryFileSystem shared;
  shared.make_directories("run");
  save({&shared, &shared, &shared}, 7, "one");
  EXPECT_EQ(latest(shared), "one");
  EXPECT_THAT(shared.list("run/checkpoints/step-00000007"), ElementsAre("manifest.json", "rank-0", "rank-1", "rank-2"));
}

// Rank 1 has a file system of its own, in which a killed run has left a directory of the same name; rank 2 has an empty one.
TEST(RankSave, WhoDoesNotSeeItSendsItsFiles) {
  MemoryFileSystem first, second, third;
  first.make_directories("run");
  second.make_directories("run/checkpoints/.tmp-step-00000007");
  second.write_file("run/checkpoints/.tmp-step-00000007/mark.tmp", "mark of another save");
  save({&first, &second, &third}, 7, "long");
  EXPECT_EQ(latest(first), "long");
  EXPECT_THAT(first.list("run/checkpoints/step-00000007"), ElementsAre("manifest.json", "rank-0", "rank-1", "rank-2"));
  EXPECT_THAT(second.list("run/checkpoints/.tmp-step-00000007"), ElementsAre("mark.tmp")) << "nothing is written there";
}

// The power fails, for all of them, at operation k = 1, 2, ... of the save.
TEST(RankSave, ACrashAtEveryOperationLeavesOldOrNew) {
  for (const Surviving surviving : {Surviving::synced_only, Surviving::everything, Surviving::names_only})
    for (int64_t k = 1, crashed = 1; crashed; ++k) {
      SCOPED_TRACE(fmt::format("crash at operation {}", k));
      MemoryFileSystem files;
      files.make_directories("run");
      save({&files, &files, &files}, 1, "old");
      files.set_faults({.at = k, .fault = Fault::crash, .surviving = surviving});
      try {
        save({&files, &files, &files}, 2, "new");
        crashed = 0;
      } catch (const SimulatedCrash&) {
      } catch (const PeerError&) {  // of another rank, which heard of it
      }
      files.reboot();
      EXPECT_THAT((std::vector<std::string>{"old", "new"}), testing::Contains(latest(files)));
      if (!crashed) {
        EXPECT_EQ(latest(files), "new");
        EXPECT_GT(k, 15);
      }
      CheckpointStore(files, "run", 2);  // the next start
      for (const std::string& name : files.list("run/checkpoints")) EXPECT_TRUE(name.starts_with("step-")) << name << " was left over";
      save({&files, &files, &files}, 3, "next");
      EXPECT_EQ(latest(files), "next");
      ASSERT_FALSE(testing::Test::HasFailure());
    }
}

// Whoever fails, all ranks are told it, nobody waits for ever, and what was written is gone.
TEST(RankSave, AnErrorAtEveryOperationIsToldAndLeavesOldOrNew) {
  for (const bool shares : {true, false})
    for (int64_t k = 1, reached = 1; reached; ++k) {
      SCOPED_TRACE(fmt::format("error at operation {}, {}", k, shares ? "shared" : "apart"));
      MemoryFileSystem files, other;
      files.make_directories("run");
      const std::vector<FileSystem*> of{&files, &files, shares ? &files : &other};
      save(of, 1, "old");
      files.set_faults({.at = k, .fault = Fault::short_write});
      bool failed = false;
      try {
        save(of, 2, "new");
      } catch (const IoError& e) {
        failed = true;
      }
      reached = files.operations() >= k;
      files.set_faults({});
      EXPECT_THAT((std::vector<std::string>{"old", "new"}), testing::Contains(latest(files)));
      EXPECT_TRUE(failed || latest(files) == "new");
      save(of, 2, "again");
      EXPECT_EQ(latest(files), "again");
      EXPECT_THAT(files.list("run/checkpoints"), ElementsAre("step-00000001", "step-00000002"));
      ASSERT_FALSE(testing::Test::HasFailure());
    }
}

TEST(RankSave, AllRanksLearnWhoCannotWrite) {
  MemoryFileSystem files;
  files.make_directories("run");
  Scenario scenario;
  scenario.ranks = kRanks;
  std::vector<std::string> told(kRanks);
  simulate(scenario, [&](World& world) {
    const int rank = world.comm->rank();
    std::optional<CheckpointStore> store;
    if (rank == 0) store.emplace(files, "run", 2);
    Part own = part_of(rank, "x");
    if (rank == 1) own.write = [](ByteSink&) { throw IoError("rank-1: the disk is full"); };
    told[static_cast<size_t>(rank)] = RankSave({files, "run", store ? &*store : nullptr, 4, "mark"}, *world.comm).save({&own, 1});
  });
  EXPECT_THAT(told, testing::Each("rank 1 on node1: rank-1: the disk is full"));
  EXPECT_TRUE(files.list("run/checkpoints").empty());
}

// A rank that is killed while the others wait for it: they end, and the checkpoints are as they were.
TEST(RankSave, AKilledRankLeavesTheOldCheckpoint) {
  for (int rank = 0; rank < kRanks; ++rank) {
    MemoryFileSystem files;
    files.make_directories("run");
    save({&files, &files, &files}, 1, "old");
    EXPECT_THROW(save({&files, &files, &files}, 2, "new", "mark", {{.rank = rank, .at_s = 1e-6}}), PeerError) << rank;
    EXPECT_EQ(latest(files), "old") << rank;
    save({&files, &files, &files}, 2, "again");
    EXPECT_EQ(latest(files), "again") << rank;
  }
}

}  // namespace
}  // namespace starling
