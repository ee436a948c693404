// Files for ranks that do not see them: who gets them, and what happens if they cannot be read or written.
#include "saving/sent_files.h"

#include <gmock/gmock.h>

#include "sim/simulate.h"
#include "storage/checkpoint.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCheckpoint = "run/checkpoints/step-00000007";

void publish(FileSystem& files, const std::string& weights) {
  files.make_directories("run");
  CheckpointStore(files, "run", 2)
      .save(7, std::vector<Part>{text_part("a", weights), text_part("b", "state"), text_part("c", "not asked for")});
}

// What each rank reads of file a and b; rank r has files[r].
std::vector<std::string> read_by(const std::vector<FileSystem*>& files, const std::vector<bool>& wanted) {
  Scenario scenario;
  scenario.ranks = static_cast<int>(files.size());
  std::vector<std::string> read(files.size());
  simulate(scenario, [&](World& world) {
    const auto me = static_cast<size_t>(world.comm->rank());
    FileSystem& own = *files[me];
    const SeenDirectory seen(own, *world.comm, "run", kCheckpoint, {"a", "b"}, wanted[me]);
    if (wanted[me]) read[me] = seen.path() + " " + own.read_file(seen.path() + "/a") + " " + own.read_file(seen.path() + "/b");
  });
  return read;
}

TEST(SeenDirectory, OneThatIsSharedIsReadWhereItIs) {
  MemoryFileSystem shared;
  publish(shared, "weights");
  EXPECT_THAT(read_by({&shared, &shared}, {true, true}), testing::Each(std::string(kCheckpoint) + " weights state"));
}

TEST(SeenDirectory, WhoLacksItGetsItForAWhile) {
  MemoryFileSystem first, second, third;
  const std::string weights(size_t{9} << 20, 'w');  // three messages
  publish(first, weights);
  third.make_directories("run/.tmp-received-2");  // of a process that was killed
  const auto read = read_by({&first, &second, &third}, {true, true, false});
  EXPECT_EQ(read[1], "run/.tmp-received-1 " + weights + " state");
  EXPECT_TRUE(second.list("run").empty());
  EXPECT_TRUE(third.list("run").empty()) << "who does not want it has nothing, and cleans up";
  EXPECT_THAT(first.list("run"), ElementsAre("checkpoints"));
}

TEST(SeenDirectory, OneOfAnotherRunIsNotTaken) {
  MemoryFileSystem first, second;
  publish(first, "weights"), publish(second, "strange");
  EXPECT_EQ(read_by({&first, &second}, {true, true})[1], "run/.tmp-received-1 weights state");
  EXPECT_EQ(second.read_file(std::string(kCheckpoint) + "/a"), "strange");
}

// At every operation on either side, all ranks are told who failed, nobody waits for ever, and nothing is left.
TEST(SeenDirectory, AnErrorIsToldToAll) {
  for (const bool sender : {true, false}) {
    int told = 0;
    for (int64_t k = 1, reached = 1; reached; ++k) {
      SCOPED_TRACE(fmt::format("{} fails at operation {}", sender ? "sender" : "receiver", k));
      MemoryFileSystem first, second;
      publish(first, std::string(size_t{5} << 20, 'w'));
      MemoryFileSystem& failing = sender ? first : second;
      failing.set_faults({.at = k, .fault = Fault::short_write});
      try {
        const auto read = read_by({&first, &second, &first}, {true, true, true});
        EXPECT_TRUE(read[1].ends_with("w state"));
      } catch (const IoError& e) {
        ++told;
        const std::string what = e.what();
        EXPECT_TRUE(what.starts_with("rank ") || what.find("fails as planned") != std::string::npos) << what;
      }
      reached = failing.operations() >= k;
      failing.set_faults({});
      // What could not even be removed goes with the next start.
      if (second.exists("run") && !second.list("run").empty()) read_by({&first, &second, &first}, {true, false, true});
      if (second.exists("run")) EXPECT_TRUE(second.list("run").empty());
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_GT(told, 2);
  }
}

}  // namespace
}  // namespace starling
