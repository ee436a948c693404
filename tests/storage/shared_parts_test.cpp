// Directories that several processes make in parts: who gets which part, what a killed one leaves, and when the whole is there.
#include "storage/shared_parts.h"

#include <gmock/gmock.h>

#include "tests/own_directory.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SharedPartsTest : public testing::Test {
 protected:
  SharedParts join(const std::string& job = "translate\n") { return {*files_, directory_.file("out"), job}; }
  void make(SharedParts& parts, int64_t part, const std::string& text) {
    const auto mine = parts.begin(part);
    ASSERT_TRUE(mine);
    files_->write_file(parts.unfinished(part, "txt"), text);
    parts.finish(part, {"txt"}, "note of " + text);
  }
  std::string refusal(const std::string& job) {
    try {
      join(job);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  }
  const OwnDirectory directory_;
  const std::unique_ptr<FileSystem> files_ = real_file_system();
};

TEST_F(SharedPartsTest, EachPartIsMadeByOneAndTheWholeAppearsAtOnce) {
  SharedParts one = join(), two = join();
  const auto first = one.begin(0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(two.begin(0)) << "the other one makes it";
  make(two, 1, "b");
  EXPECT_FALSE(one.begin(1)) << "it is done";
  EXPECT_TRUE(one.done(1));
  EXPECT_FALSE(one.done(0));
  files_->write_file(one.unfinished(0, "txt"), "a");
  one.finish(0, {"txt"}, "note of a");
  EXPECT_EQ(two.note(0), "note of a");
  const auto whole = one.begin_whole();
  ASSERT_TRUE(whole);
  EXPECT_FALSE(two.begin_whole());
  one.join(2, "txt", "text");
  EXPECT_FALSE(two.complete());
  one.publish();
  EXPECT_TRUE(two.complete());
  EXPECT_FALSE(two.begin(0)) << "there is nothing left to do";
  EXPECT_FALSE(two.begin_whole());
  EXPECT_EQ(files_->read_file(directory_.file("out/text")), "ab");
  EXPECT_THAT(files_->list(directory_.file("out")), ElementsAre("job", "text"));
  EXPECT_THAT(files_->list(directory_.path()), ElementsAre("out"));
}

TEST_F(SharedPartsTest, APartWhoseProcessHasEndedIsFree) {
  SharedParts two = join();
  {
    SharedParts one = join();
    const auto mine = one.begin(3);
    ASSERT_TRUE(mine);
    files_->write_file(one.unfinished(3, "txt"), "half of");
  }
  make(two, 3, "whole");
  EXPECT_EQ(files_->read_file(two.path(3, "txt")), "whole");
}

TEST_F(SharedPartsTest, OtherJobsAndOtherThingsAreRefusedAndStay) {
  SharedParts one = join();
  make(one, 0, "a");
  EXPECT_THAT(refusal("with a beam of 5\n"), HasSubstr("another model or other options; use those again, remove"));
  EXPECT_TRUE(one.done(0));
  const auto whole = one.begin_whole();
  one.join(1, "txt", "text");
  one.publish();
  EXPECT_THAT(refusal("with a beam of 5\n"), HasSubstr("exists already, and was not made by this command"));
  EXPECT_EQ(refusal("translate\n"), "") << "a process that comes late finds all of it done";
  files_->remove_all(directory_.file("out"));
  files_->make_directory(directory_.file(".tmp-out"));
  files_->write_file(directory_.file(".tmp-out/diary"), "mine");
  EXPECT_THAT(refusal("translate\n"), HasSubstr("is in the way"));
  EXPECT_FALSE(files_->exists(directory_.file(".tmp-out.lock")));
  EXPECT_EQ(files_->read_file(directory_.file(".tmp-out/diary")), "mine");
}

TEST_F(SharedPartsTest, WhatAStartThatEndedInTheLastStepLeftIsTidied) {
  SharedParts one = join();
  make(one, 0, "a");
  files_->write_file(one.path("text"), "a");
  files_->rename(directory_.file(".tmp-out"), directory_.file("out"));
  files_->write_file(directory_.file("out/whole.lock"), "");
  SharedParts two = join();
  EXPECT_TRUE(two.complete());
  EXPECT_THAT(files_->list(directory_.file("out")), ElementsAre("job", "text"));
}

TEST_F(SharedPartsTest, ADirectoryThatDoesNotExistIsNotMade) {
  try {
    SharedParts(*files_, directory_.file("none/out"), "job");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("does not exist; make that first"));
  }
  EXPECT_THAT(files_->list(directory_.path()), ElementsAre());
}

}  // namespace
}  // namespace starling
