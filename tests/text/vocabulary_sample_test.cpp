// The sample: as bounds and seed say, whatever the order of the lines, with exact counts.
#include "text/vocabulary_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace starling {
namespace {

std::vector<std::string> repeated_lines(uint64_t seed, int64_t count, uint64_t different) {
  Random random(seed, 0);
  std::vector<std::string> lines;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t number = random.below(different);
    lines.push_back("line " + std::to_string(number) + std::string(number % 50, '.'));
  }
  return lines;
}

std::vector<SampledLine> sample(const std::vector<std::string>& lines, int64_t max_lines, int64_t max_bytes, uint64_t seed = 1) {
  LineSampler sampler(seed, max_lines, max_bytes);
  for (const std::string& line : lines) sampler.add(line);
  return sampler.take();
}

TEST(LineSampler, KeepsWhatFitsWithExactCounts) {
  std::vector<std::string> lines = repeated_lines(1, 20000, 3000);
  std::map<std::string, int64_t> counts;
  for (const std::string& line : lines) ++counts[line];
  for (const auto& [max_lines, max_bytes] : {std::pair<int64_t, int64_t>{500, 1 << 30}, {1 << 30, 20000}, {700, 20000}}) {
    const std::vector<SampledLine> kept = sample(lines, max_lines, max_bytes);
    int64_t bytes = 0;
    std::map<std::string, int64_t> by_text;
    for (const SampledLine& line : kept) {
      bytes += static_cast<int64_t>(line.text.size());
      EXPECT_EQ(line.count, counts.at(line.text));
      by_text[line.text] = line.count;
    }
    EXPECT_EQ(by_text.size(), kept.size());
    EXPECT_LE(static_cast<int64_t>(kept.size()), max_lines);
    EXPECT_LE(bytes, max_bytes);
    EXPECT_TRUE(static_cast<int64_t>(kept.size()) == max_lines || bytes > max_bytes - 60);
    std::vector<std::string> shuffled = lines;
    std::reverse(shuffled.begin(), shuffled.end());
    std::map<std::string, int64_t> again;
    for (const SampledLine& line : sample(shuffled, max_lines, max_bytes)) again[line.text] = line.count;
    EXPECT_EQ(again, by_text);
    EXPECT_NE(sample(lines, max_lines, max_bytes, 2)[0].text + sample(lines, max_lines, max_bytes, 2)[1].text, kept[0].text + kept[1].text);
  }
}

TEST(LineSampler, KeepsTheOrderOfFirstAppearance) {
  std::vector<std::string> texts;
  for (const SampledLine& line : sample({"b", "a", "b", "c", "a"}, 100, 100)) texts.push_back(line.text + std::to_string(line.count));
  EXPECT_EQ(texts, (std::vector<std::string>{"b2", "a2", "c1"}));
}

// Each line is as likely to be kept as any other, however often it comes: 40 samples of a quarter.
TEST(LineSampler, IsFair) {
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) lines.insert(lines.end(), i < 200 ? 1 : 5, "line " + std::to_string(1000 + i));
  int64_t rare = 0, frequent = 0;
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (const SampledLine& line : sample(lines, 100, 1 << 20, seed)) ++(line.count == 1 ? rare : frequent);
  EXPECT_EQ(rare + frequent, 4000);
  EXPECT_NEAR(rare, 2000, 110);  // 4 standard deviations
}

}  // namespace
}  // namespace starling
