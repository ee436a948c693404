// Rows that are taken and given back, against what is plainly kept track of.
#include "models/row_places.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace starling {
namespace {

TEST(RowPlaces, GivesTheLowestRangeThatFitsAndJoinsWhatIsFree) {
  RowPlaces rows;
  EXPECT_EQ(rows.take(3), 0);
  EXPECT_EQ(rows.take(5), 3);
  EXPECT_EQ(rows.take(2), 8);
  rows.give_back(0, 3);
  EXPECT_EQ(rows.take(4), 10) << "three free rows are too few";
  rows.give_back(3, 5);  // joined with the three before
  EXPECT_EQ(rows.take(7), 0);
  EXPECT_EQ(rows.take(1), 7);
  EXPECT_EQ(rows.end(), 14);
  rows.give_back(8, 2);
  rows.give_back(10, 4);  // joined with the two before, and with the end
  EXPECT_EQ(rows.end(), 8);
  rows.give_back(2, 6), rows.give_back(0, 2);
  EXPECT_EQ(rows.end(), 0);
  EXPECT_THROW(rows.give_back(0, 1), Error);
}

TEST(RowPlaces, NeverGivesARowTwice) {
  Random random(3, 3);
  RowPlaces rows;
  std::vector<std::pair<int64_t, int64_t>> taken;
  std::vector<bool> busy(1000, false);
  for (int i = 0; i < 5000; ++i) {
    if (taken.size() < 10 || random.below(2) == 0) {
      if (taken.size() >= 20) continue;
      const int64_t n = 1 + static_cast<int64_t>(random.below(12)), first = rows.take(n);
      ASSERT_LE(first + n, rows.end());
      for (int64_t r = first; r < first + n; ++r) {
        ASSERT_FALSE(busy.at(static_cast<size_t>(r)));
        busy[static_cast<size_t>(r)] = true;
      }
      taken.emplace_back(first, n);
    } else {
      const size_t which = random.below(taken.size());
      rows.give_back(taken[which].first, taken[which].second);
      for (int64_t r = 0; r < taken[which].second; ++r) busy[static_cast<size_t>(taken[which].first + r)] = false;
      taken.erase(taken.begin() + static_cast<ptrdiff_t>(which));
    }
  }
  EXPECT_LE(rows.end(), 600) << "20 ranges of 12 rows at most are taken at once";
}

// Hypotheses that grow, split, end and begin at random, against the tokens that each has.
TEST(PrefixRows, HoldsEveryPrefixInRowsOfItsOwnAndReusesTheOthers) {
  Random random(4, 4);
  PrefixRows rows;
  std::vector<int64_t> content(4096, -1);  // by row: what was written there last
  std::vector<std::vector<int64_t>> prefixes;
  size_t most = 0;
  for (int64_t step = 0; step < 3000; ++step) {
    std::vector<int32_t> parent;
    std::vector<std::vector<int64_t>> next;
    for (int r = 0; r < 8; ++r) {
      const bool begins = prefixes.empty() || random.below(10) == 0;
      const int32_t from = begins ? -1 : static_cast<int32_t>(random.below(prefixes.size()));
      if (!begins && prefixes[static_cast<size_t>(from)].size() > 30) continue;
      parent.push_back(from);
      next.push_back(begins ? std::vector<int64_t>() : prefixes[static_cast<size_t>(from)]);
      next.back().push_back(8 * step + r);
    }
    rows.step(parent);
    std::set<int64_t> alive;
    for (size_t r = 0; r < next.size(); ++r) content.at(static_cast<size_t>(rows.rows()[r])) = next[r].back();
    for (size_t r = 0; r < next.size(); ++r) {
      std::vector<int64_t> read;
      for (int32_t i = rows.offsets()[r]; i < rows.offsets()[r + 1]; ++i) read.push_back(content[static_cast<size_t>(rows.index()[i])]);
      ASSERT_EQ(read, next[r]) << "row " << r << " of step " << step;
      alive.insert(next[r].begin(), next[r].end());
    }
    most = std::max(most, alive.size());
    prefixes = std::move(next);
  }
  EXPECT_EQ(rows.end(), static_cast<int64_t>(most)) << "no more rows than the most that were in use at once";
}

}  // namespace
}  // namespace starling
