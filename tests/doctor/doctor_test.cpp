// What the doctor finds on disks, in text and among ranks that are as the test makes them.
#include "doctor/doctor.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backend/backend.h"
#include "base/affinity.h"
#include "sim/simulate.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto found(Level level, const std::string& what) {
  return Contains(AllOf(Field(&Finding::level, level), Field(&Finding::what, HasSubstr(what))));
}

class Doctor : public testing::Test {
 protected:
  Doctor() : directory_(testing::TempDir() + "/doctor." + std::to_string(getpid())) { std::filesystem::create_directories(directory_); }
  ~Doctor() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << text;
    return directory_ + "/" + name;
  }
  static std::string lines(int count, const std::function<std::string(int)>& line) {
    std::string text;
    for (int i = 0; i < count; ++i) text += line(i) + "\n";
    return text;
  }
  Config text(const std::string& source, const std::string& target) const {
    Config c = parse_config("", "test");
    c.data.train = {{write("a", source), write("b", target), "", 1}};
    return c;
  }
  std::string directory_;
};

TEST_F(Doctor, SaysWhatTheMachineHas) {
  const Examined machine = examine_machine();
  EXPECT_THAT(machine.findings, Contains(Field(&Finding::what, HasSubstr("processor: "))));
  EXPECT_THAT(machine.findings, Contains(Field(&Finding::what, HasSubstr("memory: "))));
  EXPECT_THAT(machine.findings,
              Contains(Field(&Finding::what, HasSubstr(fmt::format("({} of {})", usable_cores(), sysconf(_SC_NPROCESSORS_ONLN))))));
  EXPECT_THAT(machine.findings, Contains(Field(&Finding::what, HasSubstr(cpu_instruction_set() + " loops"))));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit little = before;
  little.rlim_cur = 100 << 20;
  setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_THAT(examine_machine().findings, found(Level::problem, "files: at most 100 MiB each"));
  setrlimit(RLIMIT_FSIZE, &before);
  for (const Finding& f : machine.findings) EXPECT_EQ(f.level == Level::fine, f.mend.empty()) << f.what;
}

TEST_F(Doctor, WeighsCheckpointsAgainstTheDiskAndLeavesNothing) {
  const Examined fine = examine_disk(directory_ + "/not/yet/made", 1000, 3);
  EXPECT_THAT(fine.topic, testing::EndsWith("/doctor." + std::to_string(getpid())));
  EXPECT_THAT(fine.findings, Contains(Field(&Finding::what, HasSubstr("MB/s, written and synced"))));
  EXPECT_THAT(fine.findings, Contains(Field(&Finding::what, HasSubstr("fsync: "))));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  EXPECT_THAT(examine_disk(directory_, int64_t{1} << 55, 3).findings, found(Level::problem, "3 checkpoints of "));
}

TEST_F(Doctor, LooksAtTheSecondDiskToo) {
  Config c = parse_config("model:\n  preset: transformer-small\n", "test");
  c.train.output = directory_ + "/run";
  EXPECT_EQ(examine_disks(c).size(), 1u);
  c.checkpoint.second_directory = directory_ + "/copies";
  std::vector<Examined> disks = examine_disks(c);
  ASSERT_EQ(disks.size(), 2u);
  EXPECT_THAT(disks[1].topic, testing::EndsWith(" (checkpoint.second-directory)"));
  EXPECT_THAT(disks[1].findings, found(Level::note, "the same disk as train.output"));
  struct stat here {
  }, memory{};
  if (stat(directory_.c_str(), &here) != 0 || stat("/dev/shm", &memory) != 0 || here.st_dev == memory.st_dev) return;
  c.checkpoint.second_directory = "/dev/shm/copies";
  disks = examine_disks(c);
  EXPECT_THAT(disks[1].findings, testing::Not(found(Level::note, "the same disk as train.output")));
  EXPECT_THAT(disks[1].findings, Contains(Field(&Finding::what, HasSubstr("MB/s, written and synced"))));
}

TEST_F(Doctor, KnowsTheSizeOfACheckpoint) {
  Config c = parse_config("model:\n  preset: transformer-base\nvocab:\n  size: 32000\n", "test");
  const int64_t all = checkpoint_bytes(c);
  EXPECT_NEAR(static_cast<double>(all), 4.0 * (c.train.optimizer.ema > 0 ? 4 : 3) * 60.5e6, 0.02 * static_cast<double>(all));
}

TEST_F(Doctor, FindsGoodTextGood) {
  const auto numbered = [](const char* word) { return [word](int i) { return fmt::format("{} number {}", word, i); }; };
  const Examined texts = examine_texts(text(lines(3000, numbered("house")), lines(3000, numbered("Haus"))));
  ASSERT_EQ(texts.findings.size(), 1u);
  EXPECT_THAT(texts.findings, found(Level::fine, "the first 2000 pairs look well"));
}

TEST_F(Doctor, FindsWhatIsWrongWithText) {
  const auto same = lines(100, [](int i) { return fmt::format("equal {}", i); });
  EXPECT_THAT(examine_texts(text(same, same)).findings, found(Level::note, "100 % have equal sides"));
  EXPECT_THAT(
      examine_texts(text(lines(100, [](int i) { return fmt::format("a line {}", i); }), lines(100, [](int) { return ""; }))).findings,
      found(Level::note, "100 % have an empty side"));
  EXPECT_THAT(examine_texts(text(lines(100, [](int) { return "one"; }), lines(100, [](int) { return "eins"; }))).findings,
              found(Level::note, "99 % are repeated"));
  EXPECT_THAT(examine_texts(text("a\nb\n", "a\n")).findings, found(Level::problem, directory_ + "/a"));
  EXPECT_THAT(examine_texts(text("", "")).findings, found(Level::problem, "is empty"));
  // Far behind what is read from the start.
  const auto late = lines(9000, [](int i) {
    return i > 4000 ? fmt::format(
                          "Stra\xdf"
                          "e {}",
                          i)
                    : fmt::format("street {}", i);
  });
  const auto streets = lines(9000, [](int i) { return fmt::format("street {}", i); });
  EXPECT_THAT(examine_texts(text(streets, late)).findings, found(Level::problem, "/b: a line before byte "));
  Config missing = parse_config("", "test");
  missing.data.train = {{directory_ + "/nowhere", directory_ + "/b", "", 1}};
  EXPECT_THAT(examine_texts(missing).findings, found(Level::problem, directory_ + "/nowhere"));
}

TEST_F(Doctor, RanksMeetAndOnlyTheFirstTells) {
  Scenario scenario;
  scenario.ranks = 3;
  scenario.network.preset = "10gbe";
  std::vector<Examined> told(3);
  simulate(scenario, [&](World& world) { told[static_cast<size_t>(world.comm->rank())] = examine_ranks(world); });
  EXPECT_THAT(told[0].findings, found(Level::fine, "3 ranks of Starling "));
  EXPECT_EQ(std::count_if(told[0].findings.begin(), told[0].findings.end(),
                          [](const Finding& f) { return f.what.find(" one way, ") != std::string::npos; }),
            3);
  EXPECT_THAT(told[1].findings, IsEmpty());
  EXPECT_THAT(told[2].findings, IsEmpty());
}

TEST_F(Doctor, ReadsAsAReport) {
  const Examined some{"text", {{Level::fine, "good", ""}, {Level::note, "odd", "look"}, {Level::problem, "bad", "mend it"}}};
  EXPECT_EQ(findings_text(some), "text\n  ok      good\n  note    odd\n          mend: look\n  PROBLEM bad\n          mend: mend it\n");
  EXPECT_EQ(count({some, some}, Level::problem), 2);
}

}  // namespace
}  // namespace starling
