// Tasks that take turns.
#include "http/task_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace starling {
namespace {

// A turn lasts milliseconds: a task that runs on for as long gives way when it is asked.
void spend_a_turn() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(6);
  while (std::chrono::steady_clock::now() < end) {
  }
  TaskThreads::give_way();
}

TEST(TaskThreadsTest, ALargeTaskGivesWayToOthers) {
  std::promise<void> begun, ended;
  std::atomic<bool> small_done{false};
  TaskThreads threads("a test", 4, 1);
  threads.add(1'000'000, [&] {
    begun.set_value();
    while (!small_done) spend_a_turn();  // ends only if the other one runs before it
  });
  begun.get_future().wait();
  threads.add(10, [&] { small_done = true, ended.set_value(); });
  ended.get_future().wait();
  EXPECT_TRUE(small_done);
}

TEST(TaskThreadsTest, RunsNoMoreTasksAtOnceThanItMay) {
  std::atomic<int> running{0}, most{0}, done{0};
  std::promise<void> all;
  TaskThreads threads("a test", 8, 2);
  const auto piece = [&] {
    const int now = ++running;
    for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    --running;
  };
  for (int i = 0; i < 40; ++i)
    threads.add(1, [&] {
      for (int k = 0; k < 3; ++k) piece(), spend_a_turn();
      if (++done == 40) all.set_value();
    });
  all.get_future().wait();
  EXPECT_LE(most, 2);
}

TEST(TaskThreadsTest, ExpectsWaitsByWhatIsToBeDoneFirst) {
  std::promise<void> go_on, ended, begun;
  TaskThreads threads("a test", 1, 1);
  EXPECT_EQ(threads.expected_wait(1'000'000), 0);
  threads.add(1000, [&] { spend_a_turn(); });
  threads.add(1, [&] { ended.set_value(); });
  ended.get_future().wait();
  const auto gate = go_on.get_future().share();
  threads.add(1'000'000, [&, gate] { begun.set_value(), gate.wait(); });
  begun.get_future().wait();
  threads.add(5000, [] {});
  const double small = threads.expected_wait(10), middle = threads.expected_wait(5000), large = threads.expected_wait(1'000'000);
  EXPECT_GT(small, 0);
  EXPECT_NEAR(middle, small * 10'000 / 20, 1e-9 + 1e-6 * middle);   // 5,000 of each of the two, in place of 10
  EXPECT_NEAR(large, small * 1'005'000 / 20, 1e-9 + 1e-6 * large);  // both whole
  go_on.set_value();
}

TEST(TaskThreadsTest, ForgetsWhatHasNotBegunWhenItIsClosed) {
  std::promise<void> begun, go_on;
  std::atomic<int> ran{0};
  TaskThreads threads("a test", 1, 1);
  threads.add(1, [&] { begun.set_value(), go_on.get_future().wait(), ++ran; });
  threads.add(1, [&] { ran += 10; });
  begun.get_future().wait();
  std::thread closing([&] { threads.close(); });
  go_on.set_value();
  closing.join();
  threads.add(1, [&] { ran += 100; });
  EXPECT_TRUE(ran == 1 || ran == 11);  // the second may have begun before it was closed
}

}  // namespace
}  // namespace starling
