#include "base/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace starling {
namespace {

TEST(Affinity, ListsTheMaskOfThisProcess) {
  const std::vector<int> cores = usable_core_list();
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(usable_cores(), CPU_COUNT(&mask));
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

TEST(Affinity, Text) {
  EXPECT_EQ(cores_text({3}), "core 3");
  EXPECT_EQ(cores_text({0, 1}), "cores 0-1");
  EXPECT_EQ(cores_text({0, 1, 2, 3, 8, 10, 11}), "cores 0-3, 8, 10-11");
}

}  // namespace
}  // namespace starling
