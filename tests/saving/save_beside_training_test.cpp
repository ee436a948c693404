// Checkpoints that are written beside training: they have what was there when they began, training waits for their copies alone, and
// whatever fails is told as if it had been written at once.
#include <gmock/gmock.h>

#include <future>
#include <limits>

#include "base/memory.h"
#include "saving/rank_save.h"
#include "sim/simulate.h"
#include "tests/files/forwarding_files.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

using testing::HasSubstr;

// A disk whose writes wait until they are let go.
class HeldFiles : public ForwardingFiles {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected) override {
    if (path.ends_with("big")) gate_.wait();
    return ForwardingFiles::create(path, expected);
  }
  void let_go() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> gate_ = open_.get_future().share();
};

class BesideTraining : public testing::Test {
 protected:
  BesideTraining() {
    char pattern[] = "/tmp/starling-beside-XXXXXX";
    run_ = ::mkdtemp(pattern);
  }
  ~BesideTraining() override { real_->remove_all(run_); }
  std::string saved(const std::string& name) {
    const auto latest = latest_checkpoint(*real_, run_);
    return latest ? real_->read_file(latest->path(name)) : "none";
  }
  const std::unique_ptr<FileSystem> real_ = real_file_system();
  std::string run_;
};

// A file of a buffer's content at the time at which it is written.
Part live_part(const std::string& name, const std::string& buffer) {
  return {name, [&buffer](ByteSink& sink) { sink.write(buffer); }, buffer.size()};
}

TEST_F(BesideTraining, HasWhatWasThereWhenItBegan) {
  HeldFiles files;
  CheckpointStore store(files, run_, 2);
  World world = make_local_world();
  Copies copies(2);
  std::string buffer(40 << 20, 'a');
  for (size_t i = 0; i < buffer.size(); i += 4096) buffer[i] = static_cast<char>('b' + i / 4096 % 20);
  const std::string then = buffer;
  RankSave save({files, run_, &store, 5, ""}, *world.comm);
  const std::vector<Part> parts{live_part("big", buffer), text_part("small", "text")};
  save.begin(parts, {}, copies, false);
  std::fill(buffer.begin(), buffer.end(), 'x');  // training goes on
  for (int update = 0; update < 3; ++update) EXPECT_FALSE(save.advance(false)) << "the disk is slow";
  EXPECT_EQ(saved("small"), "none");
  files.let_go();
  EXPECT_EQ(save.advance(true), "");
  EXPECT_EQ(save.advance(false), "") << "and stays so";
  EXPECT_EQ(saved("big"), then);
  EXPECT_EQ(saved("small"), "text");
}

// The system's pages are there before the first checkpoint asks for them, unless that is too much.
TEST_F(BesideTraining, TheMemoryOfTheFirstCopyIsTakenBefore) {
  constexpr int64_t kSize = 96 << 20;
  const int64_t before = resident_memory();
  Copies copies;
  copies.prepare(kSize);
  for (int i = 0; i < 1000 && resident_memory() - before < kSize; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(resident_memory() - before, kSize);
  const Part part{"big", [](ByteSink&) {}, kSize};
  EXPECT_TRUE(copies.make_room({&part, 1}));
  EXPECT_LT(resident_memory() - before, kSize + kSize / 4) << "it was there";
  Copies too_much(1, std::numeric_limits<int>::max());
  too_much.prepare(kSize);
  EXPECT_FALSE(too_much.make_room({&part, 1}));
}

TEST_F(BesideTraining, EndsByItself) {
  CheckpointStore store(*real_, run_, 2);
  World world = make_local_world();
  Copies copies;
  std::string buffer = "first";
  for (int64_t step = 1; step <= 3; ++step) {
    RankSave save({*real_, run_, &store, step, ""}, *world.comm);
    const std::vector<Part> parts{live_part("file", buffer)};
    save.begin(parts, {}, copies, false);
    buffer = "longer with every step " + std::to_string(step);
    int updates = 0;
    while (!save.advance(false)) ++updates, std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GE(updates, 1);
    EXPECT_EQ(saved("file"), step == 1 ? "first" : "longer with every step " + std::to_string(step - 1));
  }
  EXPECT_EQ(real_->list(run_ + "/checkpoints").size(), 2u);
}

TEST_F(BesideTraining, AFailureIsTold) {
  MemoryFileSystem files;
  files.make_directories("run");
  CheckpointStore store(files, "run", 2);
  World world = make_local_world();
  Copies copies;
  const std::vector<Part> parts{text_part("file", std::string(1000, 'x'))};
  files.set_faults({.capacity_bytes = 100});
  {
    RankSave save({files, "run", &store, 1, ""}, *world.comm);
    save.begin(parts, {}, copies, false);
    EXPECT_THAT(*save.advance(true), HasSubstr("no space left on the disk of run/checkpoints/.tmp-step-00000001/file"));
  }
  EXPECT_TRUE(files.list("run/checkpoints").empty());
  files.set_faults({});
  RankSave save({files, "run", &store, 2, ""}, *world.comm);
  save.begin(parts, {}, copies, false);
  EXPECT_EQ(save.advance(true), "");
}

// Ends with the process, or with an error elsewhere, in the middle.
TEST_F(BesideTraining, WhatIsNotCompleteIsRemoved) {
  HeldFiles files;
  CheckpointStore store(files, run_, 2);
  World world = make_local_world();
  Copies copies;
  {
    RankSave save({files, run_, &store, 1, ""}, *world.comm);
    const std::vector<Part> parts{text_part("big", "text")};
    save.begin(parts, {}, copies, false);
    files.let_go();
  }
  EXPECT_TRUE(real_->list(run_ + "/checkpoints").empty());
}

// A disk from which a file is read for as long as it is wanted.
class Endless : public ForwardingFiles {
 public:
  void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) override {
    if (file_name(path) != "file") return ForwardingFiles::read_pieces(path, take);
    reading.set_value();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) take({});
    ADD_FAILURE() << "nothing has stopped the copy";
  }
  std::promise<void> reading;
};

TEST_F(BesideTraining, TheCopyElsewhereIsGivenUpWithTheRun) {
  Endless files;
  const std::string second = join_path(run_, "second");
  CheckpointStore store(files, run_, 2);
  store.also_in(second);
  World world = make_local_world();
  Copies copies;
  {
    RankSave save({files, run_, &store, 1, ""}, *world.comm);
    const std::vector<Part> parts{text_part("file", "text")};
    save.begin(parts, {}, copies, false);
    for (const auto reads = files.reading.get_future(); reads.wait_for(std::chrono::seconds(0)) != std::future_status::ready;)
      save.advance(false);
  }
  EXPECT_EQ(saved("file"), "text");
  EXPECT_TRUE(real_->list(join_path(second, "checkpoints")).empty());
}

TEST_F(BesideTraining, TheCopyElsewhereIsGivenUpForTheNextOne) {
  Endless files;
  CheckpointStore store(files, run_, 2);
  store.also_in(join_path(run_, "second"));
  World world = make_local_world();
  Copies copies;
  RankSave save({files, run_, &store, 1, ""}, *world.comm);
  const std::vector<Part> parts{text_part("file", "text")};
  save.begin(parts, {}, copies, false);
  for (const auto reads = files.reading.get_future(); reads.wait_for(std::chrono::seconds(0)) != std::future_status::ready;)
    save.advance(false);
  save.skip_copy();
  EXPECT_EQ(save.advance(true), "");
  ASSERT_EQ(save.reports().size(), 1u);
  EXPECT_THAT(save.reports()[0],
              HasSubstr("could not be copied to checkpoint.second-directory: it was cancelled in favour of the run's last checkpoint"));
  EXPECT_EQ(saved("file"), "text");
}

// A disk that takes all files but one.
class TakesNot : public ForwardingFiles {
 public:
  explicit TakesNot(std::string name) : name_(std::move(name)) {}
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected) override {
    if (file_name(path) == name_) throw IoError(path + ": the disk is full");
    return ForwardingFiles::create(path, expected);
  }

 private:
  const std::string name_;
};

// All ranks learn after the same update that a checkpoint is complete, or what has failed, however late each of them is. The threads that
// write are real, the ranks simulated.
TEST_F(BesideTraining, RanksLearnItTogether) {
  for (int64_t round = 1; round <= 12; ++round) {
    const std::string refused = round % 4 == 0 ? fmt::format("rank-{}", round / 4 - 1) : "none";
    TakesNot files(refused);
    CheckpointStore store(files, run_, 2);
    Scenario scenario;
    scenario.ranks = 3;
    std::vector<int> learned(3, -1);
    std::vector<std::string> told(3);
    simulate(scenario, [&](World& world) {
      const int rank = world.comm->rank();
      // In some rounds rank 1 lacks the memory for copies: then all write at once.
      Copies copies(1, round % 3 == 0 && rank == 1 ? std::numeric_limits<int>::max() : 1);
      RankSave save({files, run_, rank == 0 ? &store : nullptr, round, rank == 0 ? "mark" : ""}, *world.comm);
      const Part part = text_part(fmt::format("rank-{}", rank), std::string(static_cast<size_t>(1000 * rank + 1), 'r'));
      save.begin({&part, 1}, {}, copies, false);
      if (round % 3 == 0) EXPECT_TRUE(save.advance(false)) << "it was done at once";
      std::optional<std::string> result;
      int update = 0;
      for (; !(result = save.advance(false)); ++update) std::this_thread::sleep_for(std::chrono::microseconds(100 * ((rank + round) % 3)));
      told[static_cast<size_t>(rank)] = *result, learned[static_cast<size_t>(rank)] = update;
    });
    EXPECT_THAT(learned, testing::Each(learned[0]));
    EXPECT_THAT(told, testing::Each(told[0]));
    if (refused == "none") {
      EXPECT_EQ(told[0], "");
      EXPECT_EQ(latest_checkpoint(files, run_)->step, round);
      EXPECT_EQ(latest_checkpoint(files, run_)->files.size(), 3u);
    } else {
      const int64_t rank = round / 4 - 1;
      EXPECT_THAT(told[0], HasSubstr(fmt::format("rank {} on node{}: {}/checkpoints/.tmp-step-", rank, rank, run_)));
      EXPECT_EQ(latest_checkpoint(files, run_)->step, round - 1);
    }
  }
}

}  // namespace
}  // namespace starling
