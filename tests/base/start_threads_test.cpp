// Threads that the system refuses: what can be done by those that there are is done, and the rest is refused with the remedy.
#include "base/start_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/ordered_pipeline.h"
#include "tests/base/refused_threads.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WorkSideBySide, CallsEachNumberOnAThreadOfItsOwn) {
  std::mutex mutex;
  std::set<size_t> numbers;
  std::set<std::thread::id> threads;
  std::atomic<int> there{0};
  work_side_by_side(4, [&](size_t i) {
    for (++there; there < 4;) std::this_thread::yield();  // all at once
    const std::lock_guard lock(mutex);
    numbers.insert(i), threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(numbers, (std::set<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(threads.size(), 4u);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

TEST(WorkSideBySide, TellsTheFirstFailureWhenAllHaveEnded) {
  std::atomic<int> ended{0};
  const auto all_fail = [&] {
    work_side_by_side(3, [&](size_t i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * (3 - i)));
      ++ended;
      throw std::runtime_error("number " + std::to_string(i));
    });
  };
  EXPECT_THAT(all_fail, ThrowsMessage<std::runtime_error>("number 0"));
  EXPECT_EQ(ended, 3);
}

TEST(WorkSideBySide, TheCallerDoesItAllWhereNoThreadIsGiven) {
  const RefusedThreads refused;
  int next = 0, calls = 0;
  work_side_by_side(8, [&](size_t i) {
    EXPECT_EQ(i, 0u);
    for (++calls; next < 100;) ++next;
  });
  EXPECT_EQ(next, 100);
  EXPECT_EQ(calls, 1);
}

TEST(StartThread, SaysWhatForAndWhatHelps) {
  bool ran = false;
  start_thread("a test", [&] { ran = true; }).join();
  EXPECT_TRUE(ran);
  const RefusedThreads refused;
  EXPECT_THAT([] { start_thread("a test", [] {}); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("a thread for a test cannot be started: Resource temporarily unavailable; "), HasSubstr("ulimit -u"))));
}

TEST(RequireThreads, CountsTheCaller) {
  EXPECT_NO_THROW(require_threads(0));
  EXPECT_NO_THROW(require_threads(3));
  const RefusedThreads refused;
  EXPECT_NO_THROW(require_threads(0));
  EXPECT_THAT([] { require_threads(3); },
              ThrowsMessage<ConfigError>(HasSubstr("computing thread 2 of 4 cannot be started: Resource temporarily unavailable; ")));
}

int taken_from_pipeline() {
  int made = 0, taken = 0;
  run_in_order<int>({.make = [&](int&) { return made++ < 10; }, .work = [](int&) {}, .take = [&](int&) { ++taken; }}, 3, 4);
  return taken;
}

TEST(OrderedPipelineThreads, AreRefusedWithoutEndingTheProgram) {
  {
    const RefusedThreads refused;
    EXPECT_THAT(taken_from_pipeline, ThrowsMessage<ConfigError>(HasSubstr("a thread for reading cannot be started")));
  }
  EXPECT_EQ(taken_from_pipeline(), 10);
}

// The thread that makes items waits for somebody to work on them: it must be told to end.
TEST(OrderedPipelineThreads, OneIsNotEnoughAndTwoAre) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve address space beyond any limit";
#endif
  {
    const RefusedThreads refused(1);
    EXPECT_THAT(taken_from_pipeline, ThrowsMessage<ConfigError>(HasSubstr("a thread for working on what is read cannot be started")));
  }
  const RefusedThreads refused(2);
  EXPECT_EQ(taken_from_pipeline(), 10);
}

}  // namespace
}  // namespace starling
