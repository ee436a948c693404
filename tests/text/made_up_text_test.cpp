// Text for measurements: the same for the same seed, and varied enough that no cache makes it look easy.
#include "bench/made_up_text.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace starling {
namespace {

TEST(MadeUpText, IsAFunctionOfSeedAndIndex) {
  std::string source, target, again, other;
  MadeUpText(3).pair(41, source, target);
  MadeUpText(3).pair(41, again, other);
  EXPECT_EQ(source, again);
  EXPECT_EQ(target, other);
  EXPECT_NE(source, target);
  MadeUpText(4).pair(41, again, other);
  EXPECT_NE(source, again);
}

TEST(MadeUpText, HasManyWordsInSentencesOfTwenty) {
  const MadeUpText text(1);
  std::set<std::string> lines, words;
  std::string source, target;
  int64_t count = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    text.pair(i, source, target);
    lines.insert(source);
    std::istringstream in(source);
    for (std::string word; in >> word; ++count) words.insert(word);
  }
  EXPECT_GT(lines.size(), 1990u);
  EXPECT_GT(words.size(), 5000u);
  EXPECT_NEAR(static_cast<double>(count) / 2000, 20, 4);
}

}  // namespace
}  // namespace starling
