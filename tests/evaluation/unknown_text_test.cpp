// What a start says of text that its vocabulary does not know, against texts whose unknown characters were put there one by one.
#include "evaluation/unknown_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/data/fixtures.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class UnknownTextTest : public testing::Test {
 protected:
  // So many pairs, of which the first `sources` and `targets` have two letters, apart from each other, that no vocabulary here has.
  UnknownTexts count(int pairs, int sources, int targets) {
    std::string source, target;
    for (int i = 0; i < pairs; ++i) {
      source += i < sources ? "ka 漢 lo 字\n" : "ka lo\n";
      target += i < targets ? "mi Ж ka Щ lo\n" : "mi ka lo\n";
    }
    DataOptions data;
    data.train = {{directory_.write("s", source), directory_.write("t", target), ""}};
    const auto& v = vocabularies_;
    return count_unknown(TokenStore::open_or_build(*files_, directory_.path("data"), data, v.source(), v.target(), {}), v);
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  const Vocabularies vocabularies_{test::small_vocabulary(directory_), std::nullopt};
};

TEST_F(UnknownTextTest, CountsSentencesAndPiecesOfEachSide) {
  const UnknownTexts counts = count(200, 6, 90);
  EXPECT_EQ(counts.source.sentences, 200);
  EXPECT_EQ(counts.source.affected, 6);
  EXPECT_EQ(counts.source.unknown, 2 * 6);
  EXPECT_EQ(counts.target.affected, 90);
  EXPECT_EQ(counts.target.unknown, 2 * 90);
  EXPECT_GT(counts.target.pieces, 200 * 3);
  EXPECT_THAT(unknown_line(counts, vocabularies_, ""),
              AllOf(StartsWith("warning: "), HasSubstr("in 3 % of the source sentences and 45 % of the target sentences"),
                    HasSubstr("vocab.character-coverage than 0.9999")));
  EXPECT_THAT(unknown_line(counts, vocabularies_, "other/best"),
              AllOf(HasSubstr("comes from other/best and cannot change"), Not(HasSubstr("character-coverage"))));
}

TEST_F(UnknownTextTest, AllOfItIsAHundredPercent) {
  EXPECT_THAT(unknown_line(count(200, 200, 1), vocabularies_, ""),
              HasSubstr("in 100 % of the source sentences and 0.5 % of the target sentences"));
}

TEST_F(UnknownTextTest, FewAreNoWarningAndNoneAreNoLine) {
  EXPECT_THAT(unknown_line(count(200, 1, 0), vocabularies_, ""), StartsWith("the vocabulary does not know characters in 0.5 % of"));
  EXPECT_EQ(unknown_line(count(200, 0, 0), vocabularies_, ""), "");
}

TEST_F(UnknownTextTest, OfALargeTextASpreadSampleIsCounted) {
  const UnknownTexts counts = count(140000, 0, 70000);
  EXPECT_EQ(counts.target.sentences, 65536);
  EXPECT_NEAR(static_cast<double>(counts.target.affected), 65536 / 2, 2);
}

}  // namespace
}  // namespace starling
