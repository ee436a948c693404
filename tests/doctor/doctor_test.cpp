// What the doctor finds on disks, in text and among ranks that are as the test makes them.
#include "doctor/doctor.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "backend/backend.h"
#include "base/affinity.h"
#include "base/error.h"
#include "sim/simulate.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::AnyOf;
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
  EXPECT_THAT(texts.findings, found(Level::fine, "the first 2000 pairs look good"));
}

// By what they say, not by where they stand or how their files are called.
TEST_F(Doctor, FindsValidationPairsInTheTrainingText) {
  const auto numbered = [](const char* words) { return [words](int i) { return fmt::format("{} number {}", words, i); }; };
  Config c = text(lines(3000, numbered("the house with the")), lines(3000, numbered("das Haus mit der")));
  const auto valid = [&](const std::string& source, const std::string& target) {
    std::ofstream(directory_ + "/valid.a") << source;
    std::ofstream(directory_ + "/valid.b") << target;
    c.valid.source = directory_ + "/valid.a", c.valid.target = directory_ + "/valid.b", c.valid.metrics = {"bleu"};
    return examine_texts(c).findings;
  };
  EXPECT_THAT(valid("the house with the number 2950\nthe house with the number 2951\na house of its own, new\n",
                    "das Haus mit der number 2950\nein anderes Haus\nein Haus\n"),
              found(Level::note, ": 1 pair of the validation text is also in it"));
  const auto none = testing::Not(found(Level::note, "of the validation text"));
  EXPECT_THAT(valid("the house with the number 2950\nyes\n", "das Haus\nja\n"), none);
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

// There are no random places in an archive: its beginning is read, whatever its name.
TEST_F(Doctor, ReadsTheBeginningOfArchives) {
  const auto archive = [&](const std::string& name, const std::string& content) {
    gzFile file = gzopen((directory_ + "/" + name).c_str(), "wb1");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return directory_ + "/" + name;
  };
  const auto house = [](int i) { return fmt::format("house number {}", i); };
  Config c = parse_config("", "test");
  c.data.train = {{archive("a.gz", lines(5000, house)), archive("b", lines(5000, house)), "", 1}};
  EXPECT_THAT(examine_texts(c).findings, testing::Not(Contains(Field(&Finding::level, Level::problem))));
  archive("b", lines(4000, house) +
                   "Stra\xdf"
                   "e\n");
  EXPECT_THAT(examine_texts(c).findings, found(Level::problem, "/b:4001: invalid UTF-8"));
  archive("b", lines(9000, [&](int i) { return i < 8000 ? std::string(1023, 'x') : "Stra\xdf"; }));
  c.data.train[0].source = archive("a", lines(9000, house));
  EXPECT_THAT(examine_texts(c, 7 << 20).findings,
              found(Level::fine, "/b: the first 7168 lines (7 MiB) are text; the rest of the archive was not read"));
  EXPECT_THAT(examine_texts(c).findings, found(Level::problem, "/b:8001: invalid UTF-8"));
}

TEST_F(Doctor, OtherHostsNeedTheFilesToo) {
  Config c = text("one\n", "eins\n");
  c.train.output = directory_ + "/run";
  c.valid.source = directory_ + "/a", c.valid.target = directory_ + "/b";
  const auto topic = [](const std::vector<Examined>& all, const std::string& name) {
    for (const Examined& examined : all)
      if (examined.topic.starts_with(name)) return examined.findings;
    return std::vector<Finding>();
  };
  std::vector<Examined> all = examine_other_host(c, "");
  EXPECT_THAT(topic(all, "machine"), Contains(Field(&Finding::what, HasSubstr("cores: "))));
  EXPECT_THAT(topic(all, "disk of "), Contains(Field(&Finding::what, HasSubstr("room: "))));
  EXPECT_THAT(topic(all, "text"), found(Level::fine, "2 files can be read"));
  std::filesystem::remove(directory_ + "/b");
  std::filesystem::create_directory(directory_ + "/c");
  c.data.train[0].sentence_weights = directory_ + "/c";
  const Examined texts = examine_text_files(c);
  EXPECT_THAT(texts.findings, found(Level::problem, "/b: cannot be read: No such file or directory"));
  EXPECT_THAT(texts.findings, found(Level::problem, "/c: cannot be read: it is a directory"));
  EXPECT_EQ(texts.findings.size(), 2u);
  all = examine_other_host({}, "my.yml: cannot be opened");
  EXPECT_THAT(topic(all, "configuration"), found(Level::problem, "my.yml: cannot be opened"));
}

Scenario three_hosts() {
  Scenario scenario;
  scenario.ranks = 3;
  scenario.network.preset = "10gbe";
  return scenario;
}

// Runs body on simulated ranks, and returns what each of them got.
std::vector<std::vector<Examined>> on_ranks(const Scenario& scenario, const std::function<std::vector<Examined>(World&)>& body) {
  std::vector<std::vector<Examined>> told(static_cast<size_t>(scenario.ranks));
  simulate(scenario, [&](World& world) { told[static_cast<size_t>(world.comm->rank())] = body(world); });
  return told;
}

TEST_F(Doctor, RanksMeetAndOnlyTheFirstTells) {
  const auto told = on_ranks(three_hosts(), [](World& world) { return std::vector<Examined>{examine_ranks(world), examine_links(world)}; });
  EXPECT_EQ(told[0][0].topic, kRanksTopic);
  EXPECT_THAT(told[0][0].findings, found(Level::fine, "3 ranks of Starling "));
  std::vector<std::string> pairs;
  for (const Finding& f : told[0][1].findings)
    if (f.what.find(" one way, ") != std::string::npos) pairs.push_back(f.what.substr(0, f.what.find(':')));
  EXPECT_THAT(pairs, testing::ElementsAre("node0 and node1", "node1 and node2", "node0 and node2"));
  for (const size_t rank : {1, 2})
    for (const Examined& examined : told[rank]) EXPECT_THAT(examined.findings, IsEmpty());
}

TEST_F(Doctor, SaysHowManyPairsAreNotMeasured) {
  const auto told = on_ranks(three_hosts(), [](World& world) { return std::vector<Examined>{examine_links(world, 2)}; });
  EXPECT_THAT(told[0][0].findings, found(Level::note, "2 of 3 pairs of hosts were measured, neighbours in the list first; 1 were not"));
  EXPECT_THAT(told[1][0].findings, IsEmpty());
}

TEST_F(Doctor, NamesTheHostThatNoMessageReaches) {
  Scenario scenario = three_hosts();
  scenario.link_faults.push_back({.node = 2, .factor = 0});
  try {
    on_ranks(scenario, [](World& world) { return std::vector<Examined>{examine_ranks(world)}; });
    FAIL();
  } catch (const PeerError& e) {
    EXPECT_THAT(e.what(), AnyOf(HasSubstr("no message gets through between node0 and node2 within 10 s: "),
                                HasSubstr("no message gets through between node1 and node2 within 10 s: "),
                                HasSubstr("no message gets through between node2 and node0, node1 within 10 s: ")));
  }
}

TEST_F(Doctor, TellsOfOtherHostsWhatEachHasFoundOnce) {
  Scenario scenario = three_hosts();
  scenario.ranks = 6;
  scenario.network.ranks_per_node = 2;
  const Finding cores{Level::fine, "cores: 4", ""}, readable{Level::fine, "1 file can be read", ""},
      missing{Level::problem, "a: cannot be read", "copy it"};
  const auto told = on_ranks(scenario, [&](World& world) {
    const Finding memory{Level::note, fmt::format("memory of rank {}", world.comm->rank()), "more"};
    std::vector<Examined> own{{"machine", {cores, memory}}, {"text", {readable}}};
    if (world.comm->rank() == 4) own[1].findings = {missing};
    return gather_findings(*world.comm, own);
  });
  std::string report;
  for (const Examined& examined : told[0]) report += findings_text(examined);
  EXPECT_EQ(report,
            "machine on node1, node2\n  ok      cores: 4\n"
            "machine on node1\n  note    memory of rank 2\n          mend: more\n"
            "machine on node2\n  note    memory of rank 4\n          mend: more\n"
            "text on node1\n  ok      1 file can be read\n"
            "text on node2\n  PROBLEM a: cannot be read\n          mend: copy it\n");
  for (size_t rank = 1; rank < 6; ++rank) EXPECT_THAT(told[rank], IsEmpty());
}

TEST_F(Doctor, ReadsAsAReport) {
  const Examined some{"text", {{Level::fine, "good", ""}, {Level::note, "odd", "look"}, {Level::problem, "bad", "mend it"}}};
  EXPECT_EQ(findings_text(some), "text\n  ok      good\n  note    odd\n          mend: look\n  PROBLEM bad\n          mend: mend it\n");
  EXPECT_EQ(count({some, some}, Level::problem), 2);
}

}  // namespace
}  // namespace starling
