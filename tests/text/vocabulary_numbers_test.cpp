// SentencePiece models whose pieces have other numbers, and those that are a list of words.
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kPath = STARLING_SOURCE_DIR "/tests/fixtures/marian/v.spm";

class Renumbered : public testing::Test {
 protected:
  Renumbered() {
    for (int32_t id = 0; id < own_.size(); ++id) pieces_.push_back(own_.piece(id));
  }
  Vocabulary with(const std::vector<std::string>& pieces, bool written = true) const {
    return Vocabulary::from_bytes(vocabulary_format::renumbered(own_.bytes(), pieces, written, "list"));
  }
  std::string refusal(const std::vector<std::string>& pieces) const {
    try {
      with(pieces);
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  }
  const Vocabulary own_ = Vocabulary::load(kPath);
  std::vector<std::string> pieces_;
};

TEST_F(Renumbered, TheOrderOfTheListIsThatOfTheNumbers) {
  std::vector<std::string> turned(pieces_.rbegin(), pieces_.rend());
  const Vocabulary v = with(turned);
  EXPECT_EQ(v.size(), own_.size());
  EXPECT_EQ(v.eos(), own_.size() - 1);
  EXPECT_EQ(v.bos(), -1);
  for (const std::string text : {"Ein Mann, der einem Strand.", "Zwei Hunde 😀 im Schnee", "  ", "größer als <unk>"}) {
    const std::vector<int32_t> before = own_.encode(text), now = v.encode(text);
    ASSERT_EQ(before.size(), now.size()) << text;
    for (size_t i = 0; i < now.size(); ++i) EXPECT_EQ(v.piece(now[i]), own_.piece(before[i]));
    EXPECT_EQ(v.decode(now), own_.decode(before));
  }
}

TEST_F(Renumbered, PiecesThatAreNotListedAreUnknown) {
  std::vector<std::string> fewer = pieces_;
  std::erase(fewer, "▁Mann");
  const Vocabulary v = with(fewer);
  EXPECT_EQ(v.size(), own_.size() - 1);
  EXPECT_THAT(v.encode("Mann"), ElementsAre(v.unk()));
  EXPECT_THAT(v.encode_with_bytes("Mann").ids, ElementsAre(v.unk()));
  EXPECT_EQ(vocabulary_format::pieces(v.bytes()).back().ordinary, false);  // not for sampled segmentations
}

TEST_F(Renumbered, ListedPiecesThatTheModelDoesNotHave) {
  std::vector<std::string> more = pieces_;
  more.push_back("▁Wort");
  more.push_back("<blank>");
  const Vocabulary written = with(more), read = with(more, false);
  const auto id = static_cast<int32_t>(own_.size());
  EXPECT_EQ(written.decode(std::vector{id, id + 1}), "Wort");
  EXPECT_EQ(read.decode(std::vector{id}), "");
  EXPECT_EQ(written.encode("Wort"), own_.encode("Wort"));  // never read
}

TEST_F(Renumbered, RefusesListsThatCannotBe) {
  std::vector<std::string> twice = pieces_, without = pieces_;
  twice.push_back("▁Mann");
  std::erase(without, "</s>");
  EXPECT_THAT(refusal(twice), HasSubstr("list: piece '▁Mann' is listed twice"));
  EXPECT_THAT(refusal(without), HasSubstr("list: </s> is missing"));
}

TEST(WordModel, SplitsAtSpaces) {
  const Vocabulary v = Vocabulary::from_bytes(
      vocabulary_format::word_model(std::vector<std::string>{"<blank>", "<s>", "</s>", "a", "ب", "a@@", "<unk>"}, "list"));
  EXPECT_EQ(v.size(), 7);
  EXPECT_EQ(v.bos(), 1);
  EXPECT_EQ(v.eos(), 2);
  EXPECT_EQ(v.unk(), 6);
  EXPECT_THAT(v.encode("a ب a@@ aa a"), ElementsAre(3, 4, 5, 6, 3));
  EXPECT_THAT(v.encode("<s> a </s>"), ElementsAre(6, 3, 6));
  EXPECT_THAT(v.encode("b bb a"), ElementsAre(6, 3));  // as SentencePiece does: unknown neighbours become one
  EXPECT_EQ(v.decode(std::vector{3, 4, 5, 0, 2}), "a ب a@@");
  EXPECT_THROW(vocabulary_format::word_model(std::vector<std::string>{"<unk>", "</s>", "a", "a"}, "list"), DataError);
  EXPECT_THROW(vocabulary_format::word_model(std::vector<std::string>{"<unk>", "a"}, "list"), DataError);
}

}  // namespace
}  // namespace starling
