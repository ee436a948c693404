// Sentences that no model takes whole: together the parts are the sentence, each fits, and cuts are where people would make them.
#include "document/parts.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/utf8.h"

namespace starling {
namespace {

class PartsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (std::filesystem::temp_directory_path() / "starling-parts-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    const std::vector<std::string> lines{"the dog, the cat; a house. and so on, it runs", "red trees run (a lot) over houses",
                                         "好 很 我 你 ，"};
    size_t at = 0;
    VocabularyOptions options;
    options.size = 60;
    train_vocabulary([&](std::string_view& line) { return at < lines.size() && (line = lines[at++], true); }, options, directory_ + "/v");
    vocabulary_ = new Vocabulary(Vocabulary::load(directory_ + "/v"));
  }
  static void TearDownTestSuite() {
    delete vocabulary_;
    std::filesystem::remove_all(directory_);
  }
  static std::vector<std::string> parts(const std::string& text, int64_t most) { return parts_that_fit(text, *vocabulary_, most); }
  static inline std::string directory_;
  static inline Vocabulary* vocabulary_ = nullptr;
};

TEST_F(PartsTest, AreTheSentenceAndFit) {
  std::string chinese, words, spaces = "the" + std::string(3000, ' ') + "dog";
  for (int i = 0; i < 500; ++i) chinese += i % 9 ? "好" : "，", words += i % 7 ? "house " : "dog, ";
  for (const std::string& text :
       {std::string(), std::string("dog"), chinese, words, spaces, std::string(5000, 'x'), std::string(300, '\xFF'), words + chinese})
    for (const int64_t most : {8, 20, 100}) {
      std::string together;
      for (const std::string& part : parts(text, most)) {
        together += part;
        EXPECT_FALSE(part.empty());
        EXPECT_LE(static_cast<int64_t>(vocabulary_->encode(part).size()), most) << part;
        EXPECT_TRUE(invalid_utf8_offset(text) || !invalid_utf8_offset(part)) << part;
      }
      EXPECT_EQ(together, text);
    }
  EXPECT_EQ(parts("the dog, the cat", 100).size(), 1u);
}

TEST_F(PartsTest, AreCutBehindClausesElseAtSpacesElseAnywhere) {
  EXPECT_EQ(place_to_cut("one two; three, four five", 20), std::string_view("one two; three, ").size());
  EXPECT_EQ(place_to_cut("one two three; four, five six", 22), std::string_view("one two three; ").size());
  EXPECT_EQ(place_to_cut("a. and then a long way", 20), std::string_view("a. and then a long ").size());
  EXPECT_EQ(place_to_cut("onetwothreefour", 10), 10u);
  EXPECT_EQ(place_to_cut("你好，你好你好", 16), std::string_view("你好，").size());
  EXPECT_EQ(place_to_cut("你好你好", 7), 6u);  // between characters
  EXPECT_EQ(place_to_cut("你好", 1), 3u);      // at least one
  EXPECT_EQ(place_to_cut("short", 100), 5u);
}

TEST_F(PartsTest, AreJoinedAgainWithTheirLinks) {
  const AlignedText joined = joined_parts(std::vector<std::string>{"one two, ", "three"},
                                          std::vector<AlignedText>{{"eins zwei,", {{{0, 3}, {0, 4}}}}, {"drei", {{{0, 5}, {0, 4}}}}});
  EXPECT_EQ(joined.text, "eins zwei, drei");
  EXPECT_EQ(joined.links, (std::vector<AlignedText::Link>{{{0, 3}, {0, 4}}, {{9, 14}, {11, 15}}}));
  EXPECT_EQ(joined_parts(std::vector<std::string>{"one ", "two"}, std::vector<AlignedText>{{"一", {}}, {"二", {}}}).text, "一二");
  EXPECT_EQ(joined_parts(std::vector<std::string>{"abc", "def"}, std::vector<AlignedText>{{"x", {}}, {"y", {}}}).text, "xy");
  EXPECT_EQ(joined_parts(std::vector<std::string>{"a ", " ", "b"}, std::vector<AlignedText>{{"x", {}}, {"", {}}, {"y", {}}}).text, "x y");
}

}  // namespace
}  // namespace starling
