// Lines of links, and the links between pieces that follow from those between words.
#include "text/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fixtures.h"

namespace starling {

void PrintTo(const TokenLink& link, std::ostream* out) { *out << link.source << "-" << link.target; }

namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(LinkLines, AreReadAndMistakesNamed) {
  EXPECT_THAT(parse_links("0-0 1-2  12-3\t"), ElementsAre(Pair(0, 0), Pair(1, 2), Pair(12, 3)));
  EXPECT_THAT(parse_links(" "), IsEmpty());
  for (const char* wrong : {"0-", "-1", "1-2-3", "1 - 2", "a-b", "1?2", "0-99999999999", "1-x", "1--2", "0–0"})
    EXPECT_THAT(message_of<DataError>([&] { parse_links(std::string("0-0 ") + wrong); }), HasSubstr("is not a link")) << wrong;
  const GoldLinks gold = parse_gold_links("0-0 1?2 3p3");
  EXPECT_THAT(gold.sure, ElementsAre(Pair(0, 0)));
  EXPECT_THAT(gold.possible, ElementsAre(Pair(1, 2), Pair(3, 3)));
}

// "ab cd" in the pieces " a", "b", " ", "cd", and a target of three words in a piece each.
class TokenLinks : public testing::Test {
 protected:
  std::vector<TokenLink> of(const std::string& line, AlignmentUnit unit, int64_t prefix = 0) const {
    return token_links(parse_links(line), unit, {"ab cd", source_}, {"x y z", target_}, prefix);
  }
  EncodedLine source_{{7, 8, 9, 10}, {{0, 1}, {1, 2}, {2, 3}, {3, 5}}}, target_{{7, 8, 9}, {{0, 1}, {1, 3}, {3, 5}}};
};

// Words: all of their pieces; what is not linked, and the end, belongs to the source's end, which is its fifth token.
TEST_F(TokenLinks, OfWordsAreThoseOfAllTheirPieces) {
  EXPECT_THAT(of("0-1 1-0", AlignmentUnit::words),
              ElementsAre(TokenLink{2, 0}, TokenLink{3, 0}, TokenLink{0, 1}, TokenLink{1, 1}, TokenLink{4, 2}, TokenLink{4, 3}));
  EXPECT_THAT(
      of("1-2 0-2 1-2", AlignmentUnit::words, 2),  // behind two tags; a pair counts once
      ElementsAre(TokenLink{6, 0}, TokenLink{6, 1}, TokenLink{2, 2}, TokenLink{3, 2}, TokenLink{4, 2}, TokenLink{5, 2}, TokenLink{6, 3}));
  EXPECT_THAT(of("", AlignmentUnit::words), IsEmpty());
}

TEST_F(TokenLinks, OfPiecesAreTheirOwn) {
  EXPECT_THAT(of("3-0 0-2", AlignmentUnit::pieces), ElementsAre(TokenLink{3, 0}, TokenLink{4, 1}, TokenLink{0, 2}, TokenLink{4, 3}));
}

TEST_F(TokenLinks, BeyondASideAreRefused) {
  EXPECT_THAT(message_of<DataError>([&] { of("2-0", AlignmentUnit::words); }),
              HasSubstr("2-0 is beyond the source, which has 2 positions"));
  EXPECT_THAT(message_of<DataError>([&] { of("0-3", AlignmentUnit::words); }),
              HasSubstr("0-3 is beyond the target, which has 3 positions"));
  EXPECT_THAT(message_of<DataError>([&] { of("4-0", AlignmentUnit::pieces); }), HasSubstr("which has 4 positions"));
  // Words that have no pieces are there all the same, and those that are not there are not.
  const auto without_pieces = [](const char* links) { token_links(parse_links(links), AlignmentUnit::words, {"ab cd", {}}, {"x", {}}, 0); };
  EXPECT_NO_THROW(without_pieces("1-0"));
  EXPECT_THAT(message_of<DataError>([&] { without_pieces("2-0"); }), HasSubstr("2-0 is beyond the source"));
}

// Source: two words, the second of which is cut into two now; target: three, of which the first two pieces have become one.
TEST(Links, FollowWordsThatAreCutAnew) {
  const std::vector<TokenRange> source{{0, 0}, {1, 2}, {3, 3}}, target{{0, 0}, {0, 0}, {1, 1}, {2, 2}};
  // The second target token has no word: it is linked to the end, and so the joined one only to the first's.
  const std::vector<TokenLink> links{{0, 0}, {2, 1}, {1, 2}, {2, 3}};
  EXPECT_EQ(moved_links(links, source, target), (std::vector<TokenLink>{{0, 0}, {1, 1}, {2, 1}, {3, 2}}));
  EXPECT_TRUE(moved_links({}, source, target).empty());
}

}  // namespace
}  // namespace starling
