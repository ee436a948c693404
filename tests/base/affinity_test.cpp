#include "base/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/processor_use.h"

namespace starling {
namespace {

TEST(Affinity, ListsTheMaskOfThisProcess) {
  const std::vector<int> cores = usable_core_list();
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const double quota = processor_quota();  // of a container that runs the tests
  EXPECT_EQ(usable_cores(), quota > 0 ? std::clamp(static_cast<int>(std::lround(quota)), 1, CPU_COUNT(&mask)) : CPU_COUNT(&mask));
  for (const int core : cores) EXPECT_TRUE(CPU_ISSET(core, &mask)) << core;
}

TEST(Affinity, FollowsANarrowerMask) {
  std::thread([] {
    const int last = usable_core_list().back();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_core_list(), std::vector<int>{last});
  }).join();
}

TEST(Affinity, ThreadsAreNeverMoreThanCores) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& line) { warnings.push_back(line); };
  const std::vector<int> cores{0, 1, 2, 5};
  EXPECT_EQ(threads_to_use(0, cores, warn), 4);
  EXPECT_EQ(threads_to_use(3, cores, warn), 3);
  EXPECT_EQ(threads_to_use(4, cores, warn), 4);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(threads_to_use(64, cores, warn), 4);
  EXPECT_EQ(threads_to_use(2, {7}, warn), 1);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "64 threads were requested, but this process may use only cores 0-2, 5: computing with 4 threads");
  EXPECT_EQ(warnings[1], "2 threads were requested, but this process may use only core 7: computing with 1 thread");
}

TEST(Affinity, Text) {
  EXPECT_EQ(cores_text({3}), "core 3");
  EXPECT_EQ(cores_text({0, 1}), "cores 0-1");
  EXPECT_EQ(cores_text({0, 1, 2, 3, 8, 10, 11}), "cores 0-3, 8, 10-11");
}

}  // namespace
}  // namespace starling
