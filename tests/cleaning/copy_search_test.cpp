// Copies among many pairs, with tables that hold few of the keys at a time, against a plain search.
#include "cleaning/copy_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "tests/own_directory.h"

namespace starling {
namespace {

constexpr uint32_t kPairs = 200000;

class CopiesTest : public testing::Test {
 protected:
  CopiesTest() : files_(real_file_system()), segments_(*files_, own_.path(), 30000) {}
  // Pairs of which some are broken, with keys that come several times.
  void write(bool scores) {
    std::mt19937 random(1);
    JudgedWriter writer(*files_, segments_);
    for (uint32_t i = 0; i < kPairs; ++i) {
      JudgedPair pair{.line = i + 1, .source = "a", .target = "b c"};
      if (random() % 10 == 0) pair.broken.set(Rule::ratio);
      pair.score = scores ? static_cast<float>(random() % 1000) / 100 - 5 : std::numeric_limits<float>::infinity();
      CopyKeys keys;
      keys.pair = uint64_t{random() % (kPairs / 2)} * 0x9e3779b97f4a7c15u;  // one is 0
      keys.source = uint64_t{random() % 1000} * 0xc2b2ae3d27d4eb4fu;
      writer.add(pair, keys);
      all_.push_back({pair, keys});
    }
    writer.close();
  }
  // The marks of all pairs.
  std::vector<std::pair<Rule, uint32_t>> marks() {
    std::vector<std::pair<Rule, uint32_t>> all;
    for (size_t i = 0; i < segments_.size(); ++i) {
      const SegmentMarks marks = segments_.marks(i);
      for (size_t k = 0; k < marks.rules.size(); ++k) all.emplace_back(static_cast<Rule>(marks.rules[k]), marks.first[k]);
    }
    return all;
  }
  void check_duplicates(bool scores) {
    write(scores);
    std::map<uint64_t, uint32_t> best;
    for (uint32_t i = 0; i < kPairs; ++i) {
      if (all_[i].first.broken.any()) continue;
      const auto at = best.emplace(all_[i].second.pair, i).first;
      if (all_[i].first.score > all_[at->second].first.score) at->second = i;
    }
    CopySearch(segments_, 1).mark_duplicates(&CopyKeys::pair);  // 65,536 places: four tables
    const auto found = marks();
    ASSERT_EQ(found.size(), kPairs);
    size_t copies = 0;
    for (uint32_t i = 0; i < kPairs; ++i) {
      const bool copy = !all_[i].first.broken.any() && best.at(all_[i].second.pair) != i;
      ASSERT_EQ(found[i].first == Rule::duplicate, copy) << i;
      if (copy) {
        ASSERT_EQ(found[i].second, best.at(all_[i].second.pair)) << i;
      }
      copies += copy;
    }
    EXPECT_GT(copies, 50000u);
  }
  const OwnDirectory own_;
  const std::unique_ptr<FileSystem> files_;
  Segments segments_;
  std::vector<std::pair<JudgedPair, CopyKeys>> all_;
};

TEST_F(CopiesTest, TheFirstStays) { check_duplicates(false); }
TEST_F(CopiesTest, TheBestStays) { check_duplicates(true); }

TEST_F(CopiesTest, SoManyOfAKeyStayAndAreCounted) {
  write(false);
  CopySearch copies(segments_, 1);
  std::map<uint64_t, int> seen;
  std::map<uint64_t, uint32_t> first;
  std::vector<bool> expected;
  for (uint32_t i = 0; i < kPairs; ++i) {
    const auto& [pair, keys] = all_[i];
    expected.push_back(!pair.broken.any() && ++seen[keys.source] > 100);
    if (!pair.broken.any()) first.emplace(keys.source, i);
  }
  const auto most = std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto frequent = copies.most_frequent(&CopyKeys::source, 5);
  ASSERT_EQ(frequent.size(), 5u);
  EXPECT_EQ(frequent[0].second, static_cast<uint32_t>(most->second));
  EXPECT_EQ(seen[all_[frequent[0].first].second.source], most->second);
  EXPECT_EQ(first[all_[frequent[0].first].second.source], frequent[0].first);
  copies.mark_frequent(&CopyKeys::source, 100);
  const auto found = marks();
  for (uint32_t i = 0; i < kPairs; ++i) ASSERT_EQ(found[i].first == Rule::frequent, expected[i]) << i;
}

TEST_F(CopiesTest, TheBestByScore) {
  write(true);
  CopySearch copies(segments_, 1);
  std::vector<float> scores;
  for (const auto& [pair, keys] : all_)
    if (!pair.broken.any()) scores.push_back(pair.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  for (const double share : {0.001, 0.3, 0.5, 1.0}) {
    const auto count = static_cast<size_t>(std::max(1.0, std::round(share * static_cast<double>(scores.size()))));
    EXPECT_EQ(copies.score_of_best(share), scores[count - 1]) << share;
  }
  EXPECT_EQ(copies.score_of_best_words(2001), scores[1000]);  // two words each
  for (const uint64_t more : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40})
    EXPECT_EQ(copies.score_of_best_words(2 * scores.size() + more), scores.back()) << more;
  copies.mark_scores_below(0);
  EXPECT_EQ(copies.score_of_best(1), 0.0f);
}

}  // namespace
}  // namespace starling
