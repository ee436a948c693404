// The pipeline keeps the order and its bound, and tells the first failure whichever step it is in.
#include "base/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace starling {
namespace {

TEST(OrderedPipeline, TakesEverythingInOrderWithinItsBound) {
  for (const int threads : {1, 2, 7}) {
    for (const size_t items : {1u, 3u, 20u}) {
      int made = 0;
      std::atomic<int> under_way{0}, most{0};
      std::vector<int> taken;
      run_in_order<int>({.make =
                             [&](int& item) {
                               if (made == 500) return false;
                               item = made++;
                               most = std::max(most.load(), ++under_way);
                               return true;
                             },
                         .work = [](int& item) { item *= 2; },
                         .take =
                             [&](int& item) {
                               taken.push_back(item);
                               --under_way;
                             }},
                        threads, items);
      ASSERT_EQ(taken.size(), 500u);
      for (int i = 0; i < 500; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], 2 * i);
      EXPECT_LE(most, static_cast<int>(items));
    }
  }
}

TEST(OrderedPipeline, TellsTheFirstFailureAfterWhatCameBefore) {
  for (const std::string step : {"make", "work", "take"}) {
    int made = 0, taken = 0;
    const auto fail_at = [&](const char* name, int item) {
      if (step == name && item >= 40) throw std::runtime_error(std::string(name) + " " + std::to_string(item));
    };
    try {
      run_in_order<int>({.make =
                             [&](int& item) {
                               item = made++;
                               fail_at("make", item);
                               return made < 1000;
                             },
                         .work = [&](int& item) { fail_at("work", item); },
                         .take =
                             [&](int& item) {
                               fail_at("take", item);
                               ++taken;
                             }},
                        3, 8);
      ADD_FAILURE() << step;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), step + " 40");
    }
    EXPECT_EQ(taken, 40);
  }
}

}  // namespace
}  // namespace starling
