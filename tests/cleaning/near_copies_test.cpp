// Near-copies: what counts as one, and the search among many against a comparison of each with each.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cleaning/near_search.h"
#include "cleaning/shingles.h"
#include "tests/own_directory.h"

namespace starling {
namespace {

std::vector<uint32_t> of(const std::string& text) { return shingles(JudgedSide(text)); }

TEST(NearShingles, ArePairsOfWords) {
  EXPECT_EQ(of("the cat sat on the mat").size(), 5u);
  EXPECT_EQ(of("the cat, the cat, the cat and").size(), 3u);  // each once
  EXPECT_EQ(of("The cat - sat (on) the MAT!"), of("the cat sat on the mat"));
  EXPECT_NE(of("the cat sat on the mat"), of("the cat on the mat sat"));
}

TEST(NearShingles, NumbersAreAlike) {
  const auto page = of("Page 12 of 345");
  EXPECT_EQ(page.size(), 3u);
  EXPECT_EQ(page, of("Page 7 of 8,000.50"));
  EXPECT_EQ(page, of("Page 7 of 1 000 000"));
  EXPECT_EQ(of("on 12.03.2024 at 14:30 we met model XK-4500b"), of("on 2023-1-2 at 7 we met model XK-71b"));
  EXPECT_NE(page, of("Page twelve of 345"));
}

TEST(NearShingles, LettersWithoutSpacesAreWords) {
  EXPECT_EQ(of("我今天在学校里看见他。").size(), 9u);
  EXPECT_EQ(of("我今天在学校里看见他。"), of("我 今天 在学校里 看见他"));
  EXPECT_EQ(of("ฉันไปตลาดวันนี้").size(), 13u);             // of 15 letters and marks; two neighbours come twice
  EXPECT_EQ(of("यह एक बहुत अच्छा उदाहरण है").size(), 5u);  // marks divide no words
}

TEST(NearShingles, ShortTextHasNone) {
  for (const char* text : {"", "OK", "Chapter 5", "three little words", "2 3 4 5 6 7", "no no no no no", "3 个文件", "今天在学校"})
    EXPECT_TRUE(of(text).empty()) << text;
  EXPECT_FALSE(of("four little words here").empty());
  std::string longest = "0";
  for (int i = 0; i < 10001; ++i) longest += fmt::format(" {}", std::string(1, static_cast<char>('a' + i % 26)) + std::string(i / 26, 'x'));
  EXPECT_TRUE(of(longest).empty());
}

TEST(NearShingles, AreComparedByJaccard) {
  const std::vector<uint32_t> a = {1, 2, 3, 4}, b = {2, 3, 4, 5, 6}, none;  // 3 of 6
  EXPECT_TRUE(are_near(a, b, 0.5));
  EXPECT_FALSE(are_near(a, b, 0.500001));
  EXPECT_TRUE(are_near(a, a, 1));
  EXPECT_FALSE(are_near(a, none, 0.5));
  EXPECT_TRUE(are_near(none, none, 0.9));
  const std::vector<uint32_t> five = {1, 2, 3, 4, 5};
  EXPECT_TRUE(are_near(a, five, 0.8));  // 0.8 is no binary fraction
}

// Sets of known similarity: as often as Broder's formula says they have a band in common.
TEST(NearMinHash, FindsAsOftenAsItShould) {
  std::mt19937 random(3);
  for (const double threshold : {0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
    const MinHash hash(threshold);
    for (const int common : {10, 20, 25, 30, 35}) {
      constexpr int kEach = 40, kTimes = 2000;
      const double similarity = static_cast<double>(common) / (2 * kEach - common);
      int found = 0;
      for (int i = 0; i < kTimes; ++i) {
        std::vector<uint32_t> a, b;
        for (int k = 0; k < kEach; ++k) a.push_back(random());
        b.assign(a.begin(), a.begin() + common);
        while (b.size() < kEach) b.push_back(random());
        const Bands x = hash.bands({a.data(), 20}, {a.data() + 20, 20}), y = hash.bands({b.data(), 20}, {b.data() + 20, 20});
        bool any = false;
        for (size_t k = 0; k < kBands; ++k) any |= x[k] == y[k];
        found += any;
      }
      const double expected = 1 - std::pow(1 - std::pow(similarity, static_cast<double>(hash.rows())), double{kBands});
      EXPECT_NEAR(found / double{kTimes}, expected, 0.045) << threshold << ": " << similarity;  // four standard deviations
    }
  }
}

using Words = std::vector<std::string>;
struct Text {
  Words source, target;
  float score = 0;
};

using WordPairs = std::set<std::pair<std::string, std::string>>;
WordPairs word_pairs(const Words& words) {
  WordPairs pairs;
  for (size_t i = 1; i < words.size(); ++i) pairs.emplace(words[i - 1], words[i]);
  return pairs;
}

double jaccard(const Words& a, const Words& b) {
  const WordPairs x = word_pairs(a), y = word_pairs(b);
  WordPairs both;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::inserter(both, both.end()));
  return static_cast<double>(both.size()) / static_cast<double>(x.size() + y.size() - both.size());
}

// The similarities of one side of a text to all others that have a pair of words in common, by what each pair of words is in.
class Similarities {
 public:
  Similarities(const std::vector<Text>& texts, Words Text::*side) {
    for (const Text& text : texts) {
      for (const auto& words : pairs_.emplace_back(word_pairs(text.*side))) texts_[words].push_back(pairs_.size() - 1);
    }
  }
  std::map<size_t, double> of(size_t i) const {
    std::map<size_t, double> all;
    for (const auto& words : pairs_[i])
      for (const size_t k : texts_.at(words)) ++all[k];
    for (auto& [k, common] : all) common /= static_cast<double>(pairs_[i].size() + pairs_[k].size()) - common;
    return all;
  }

 private:
  std::vector<WordPairs> pairs_;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> texts_;
};

class NearCopies : public testing::Test {
 protected:
  NearCopies() : files_(real_file_system()) {}
  Words sentence(size_t words) {
    Words all;
    for (size_t i = 0; i < words; ++i) all.push_back(word());
    return all;
  }
  std::string word() {
    std::string word;
    for (int i = 0; i < 4; ++i) word += static_cast<char>('a' + random_() % 26);
    return word;
  }
  // Families of pairs that differ from each other in some words, or on one side only, and pairs without a family.
  std::vector<Text> texts(bool scores, size_t count) {
    std::vector<Text> all;
    while (all.size() < count) {
      Text first{sentence(4 + random_() % 30), sentence(4 + random_() % 30)};
      for (size_t members = random_() % 3 == 0 ? 1 + random_() % 12 : 1, i = 0; i < members && all.size() < count; ++i) {
        Text text = random_() % 4 == 0 && i > 0 ? all.back() : first;  // or a chain
        const size_t changes = i == 0 ? 0 : random_() % 5;
        for (size_t k = 0; k < changes; ++k) {
          if (random_() % 8 != 0) text.source[random_() % text.source.size()] = word();
          if (random_() % 8 != 0) text.target[random_() % text.target.size()] = word();
        }
        text.score = scores ? static_cast<float>(random_() % 50) / 10 - 2 : std::numeric_limits<float>::infinity();
        all.push_back(text);
      }
    }
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }
  static std::string joined(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += word + ' ';
    return text;
  }
  // The marks that a search leaves; 0xFFFFFFFF: none.
  std::vector<uint32_t> marks(const std::vector<Text>& texts, const NearSearch& search, uint32_t segment_pairs) {
    const OwnDirectory own;
    Segments segments(*files_, own.path(), segment_pairs);
    JudgedWriter writer(*files_, segments, true);
    const MinHash hash(search.threshold);
    for (const Text& text : texts) {
      JudgedPair pair{.score = text.score, .source = joined(text.source), .target = joined(text.target)};
      PairShingles near{of(pair.source), of(pair.target)};
      near.bands = hash.bands(near.source, near.target);
      writer.add(pair, {}, near);
    }
    writer.close();
    mark_near_copies(segments, search);
    std::vector<uint32_t> all;
    for (size_t i = 0; i < segments.size(); ++i) {
      const SegmentMarks found = segments.marks(i);
      for (size_t k = 0; k < found.rules.size(); ++k) {
        EXPECT_TRUE(!found.marked(k) || found.rules[k] == static_cast<uint8_t>(Rule::near_copy));
        all.push_back(found.marked(k) ? found.first[k] : 0xFFFFFFFF);
      }
    }
    return all;
  }
  std::mt19937 random_{11};
  const std::unique_ptr<FileSystem> files_;
};

// Each dropped pair is near one that is better and stays; of those that are clearly near one that stays, nearly all are dropped.
TEST_F(NearCopies, AreThoseOfAComparisonOfEachWithEach) {
  for (const double threshold : {0.5, 0.6, 0.8, 0.9})
    for (const bool scores : {false, true}) {
      const std::vector<Text> all = texts(scores, 1500);
      const std::vector<uint32_t> found = marks(all, {threshold, uint64_t{1} << 20, 2}, 1 << 16);
      const Similarities sources(all, &Text::source), targets(all, &Text::target);
      int dropped = 0, clear = 0, missed = 0, only_one_side = 0;
      for (uint32_t i = 0; i < all.size(); ++i) {
        double nearest = 0;  // of the better ones that stay
        const std::map<size_t, double> source = sources.of(i), target = targets.of(i);
        for (const auto& [k, similarity] : source) {
          if (found[k] != 0xFFFFFFFF || !(all[k].score > all[i].score || (all[k].score == all[i].score && k < i))) continue;
          const double other = target.contains(k) ? target.at(k) : 0;
          nearest = std::max(nearest, std::min(similarity, other));
          only_one_side += std::max(similarity, other) >= threshold && std::min(similarity, other) < threshold - 0.1;
        }
        if (found[i] == 0xFFFFFFFF) {
          clear += nearest >= threshold + 0.1;
          missed += nearest >= threshold + 0.1;
          continue;
        }
        ++dropped;
        const Text &copy = all[i], &stays = all[found[i]];
        ASSERT_EQ(found[found[i]], 0xFFFFFFFF) << "it does not stay";
        ASSERT_TRUE(stays.score > copy.score || (stays.score == copy.score && found[i] < i));
        ASSERT_GE(jaccard(stays.source, copy.source), threshold - 1e-9);
        ASSERT_GE(jaccard(stays.target, copy.target), threshold - 1e-9);
        clear += nearest >= threshold + 0.1;
      }
      EXPECT_GT(dropped, 100) << threshold;
      EXPECT_GT(only_one_side, 5) << threshold;
      EXPECT_GT(clear, 60) << threshold;
      EXPECT_LE(missed, 0.02 * clear) << threshold << ": " << dropped << " dropped, " << missed << " of " << clear << " missed";
    }
}

TEST_F(NearCopies, AreTheSameWithAnyMemoryAndThreads) {
  for (const bool scores : {false, true}) {
    const std::vector<Text> all = texts(scores, 1500);
    const auto once = marks(all, {0.6, uint64_t{1} << 30, 1}, 1 << 16);
    EXPECT_GT(all.size() - static_cast<size_t>(std::count(once.begin(), once.end(), 0xFFFFFFFF)), 300u);
    for (const uint64_t bytes : {5000, 200000}) EXPECT_EQ(marks(all, {0.6, bytes, 4}, 100), once) << bytes << " bytes";
    const std::vector<Text> few(all.begin(), all.begin() + 300);
    EXPECT_EQ(marks(few, {0.6, 1, 1}, 100), marks(few, {0.6, uint64_t{1} << 30, 1}, 100)) << "blocks of one pair";
  }
}

// A likes B and B likes C: C goes only if A, which stays, is like it too.
TEST_F(NearCopies, ChainsEndAtPairsThatStay) {
  const Words a = sentence(30), target = sentence(30);
  Words b = a, c;
  b[3] = b[15] = "other";
  c = b;
  c[20] = c[27] = "other";
  ASSERT_GE(jaccard(a, b), 0.75);
  ASSERT_GE(jaccard(b, c), 0.75);
  ASSERT_LT(jaccard(a, c), 0.65);
  const auto found = [&](float score_a, float score_b, float score_c) {
    return marks({{a, target, score_a}, {b, target, score_b}, {c, target, score_c}}, {0.75, 1 << 20, 1}, 100);
  };
  constexpr uint32_t kStays = 0xFFFFFFFF;
  EXPECT_THAT(found(0, 0, 0), testing::ElementsAre(kStays, 0u, kStays));
  EXPECT_THAT(found(0, 1, 0), testing::ElementsAre(1u, kStays, 1u));
  EXPECT_THAT(found(1, 2, 3), testing::ElementsAre(kStays, 2u, kStays));
}

// Many that resemble each other less than asked are given up, the same with blocks of any size.
TEST_F(NearCopies, OfAFamilyThatIsNotNearEnoughAllStay) {
  const Words first = sentence(40);
  std::vector<Text> all;
  for (int i = 0; i < 1500; ++i) {
    Words words = first;
    for (int k = 0; k < 3; ++k) words[random_() % words.size()] = word();
    all.push_back({words, words});
  }
  all.push_back(all.back());  // behind too many others for the last to be compared with it
  const auto once = marks(all, {0.9, uint64_t{1} << 30, 1}, 1 << 16);
  EXPECT_GT(std::count(once.begin(), once.end(), 0xFFFFFFFF), 1000);
  EXPECT_EQ(marks(all, {0.9, 100000, 2}, 400), once);
}

// A copy of one far behind in a large family, of which more share a band with it than are compared, is found by all that it shares.
TEST_F(NearCopies, CopiesAreFoundInLargeFamilies) {
  constexpr size_t kFamily = 9500, kCopied = 9000;
  const Words first = sentence(40);
  std::vector<Text> all;
  for (size_t i = 0; i < kFamily; ++i) {
    Words words = first;
    for (int k = 0; k < 3; ++k) words[random_() % words.size()] = word();
    all.push_back({words, words});
  }
  all.push_back(all[kCopied]);
  size_t sharing = 0;
  const MinHash hash(0.8);
  const auto bands = [&](size_t i) {
    const std::vector<uint32_t> side = of(joined(all[i].source));
    return hash.bands(side, side);
  };
  const Bands wanted = bands(kCopied);
  for (size_t i = 0; i < kCopied; ++i) {
    const Bands other = bands(i);
    bool any = false;
    for (size_t b = 0; b < kBands; ++b) any |= other[b] == wanted[b];
    sharing += any;
  }
  ASSERT_GT(sharing, 550u);
  const auto found = marks(all, {0.8, uint64_t{1} << 30, 2}, 1 << 16);
  ASSERT_EQ(found[kCopied], 0xFFFFFFFF);
  EXPECT_EQ(found.back(), kCopied);
}

}  // namespace
}  // namespace starling
