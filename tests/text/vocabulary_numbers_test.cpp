// SentencePiece models whose pieces have other numbers, and those that are a list of words. What SentencePiece itself makes of a text
// (Vocabulary::pieces of the model as it was) is the measure.
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/own_directory.h"
#include "text/listed_pieces.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using vocabulary_format::Found;

const std::string kPath = STARLING_SOURCE_DIR "/tests/fixtures/marian/v.spm";

class Renumbered : public testing::Test {
 protected:
  Renumbered() {
    for (int32_t id = 0; id < own_.size(); ++id) pieces_.push_back(own_.piece(id));
  }
  Vocabulary with(const std::vector<std::string>& pieces, const std::map<std::string, Found>& found = {}) const {
    return Vocabulary::from_bytes(vocabulary_format::renumbered(own_.bytes(), {pieces, found}, "list"));
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

// Marian and transformers split text by the model of its side, and look up what comes out in a list that has pieces of both sides.
void expect_looked_up(const Vocabulary& own, const Vocabulary& v, const std::vector<std::string>& list, const std::string& text) {
  const std::vector<std::string> pieces = own.pieces(text);
  const EncodedLine line = v.encode_as_it_stands_with_bytes(text);
  std::vector<int32_t> expected;
  for (const std::string& piece : pieces) {
    const auto at = std::find(list.begin(), list.end(), piece);
    expected.push_back(at == list.end() ? v.unk() : static_cast<int32_t>(at - list.begin()));
  }
  EXPECT_EQ(v.encode_as_it_stands(text), expected) << text;
  EXPECT_EQ(line.ids, expected) << text;
  EXPECT_EQ(v.pieces(text), pieces);
  for (size_t i = 1; i < line.bytes.size(); ++i) EXPECT_EQ(line.bytes[i].begin, line.bytes[i - 1].end) << text;
}

TEST_F(Renumbered, ListedPiecesThatTheModelDoesNotHave) {
  std::vector<std::string> more = pieces_;
  for (const char* piece : {"▁Wort", "°", "ñ", "日本", "ãã", "<blank>", "<ent>", "<row 7>"}) more.emplace_back(piece);
  const Vocabulary v = with(more);
  for (const char* text : {"35 °C", "El Niño", "日本 und 日本語", "ñ°", "ãã ã ããã", "Wort", "Ein Mann <ent> <blank> <row 7> im Schnee ñ"})
    expect_looked_up(own_, v, more, text);
  EXPECT_NE(v.encode("ñ").back(), v.unk());
  EXPECT_TRUE(v.knows("Niño"));
  EXPECT_FALSE(v.knows("Niñão"));  // a run of unknown characters is one piece, which the list does not have
  const auto ids = [&](const std::vector<std::string>& pieces) {
    std::vector<int32_t> numbers;
    for (const std::string& piece : pieces) numbers.push_back(v.id_of(piece));
    return numbers;
  };
  EXPECT_EQ(v.decode(ids({"▁Wort", "<blank>", "ñ", "▁Wort"})), "Wortñ Wort");
  EXPECT_EQ(v.decode(ids({"▁ein", "<row 7>", "ñ", "▁Mann", "<ent>"})), "einñ Mann<ent>");
  EXPECT_EQ(v.decode(ids({"ñ", "▁Mann", "▁Wort"})), "ñ Mann Wort");
  const DecodedLine line = v.decode_with_bytes(ids({"<blank>", "▁Wort", "▁Mann", "</s>", "ñ"}));
  EXPECT_EQ(line.text, "Wort Mannñ");
  EXPECT_THAT(line.bytes, ElementsAre(Range{0, 0}, Range{0, 4}, Range{4, 9}, Range{9, 9}, Range{9, 11}));
  EXPECT_THAT(v.listed().without_piece(), ElementsAre(v.id_of("<row 7>")));
  EXPECT_EQ(Vocabulary::from_bytes(std::string(v.bytes())).encode("ñ"), v.encode("ñ"));
}

// The list's pieces must not take part in merges.
TEST(RenumberedBpe, SplitsAsBefore) {
  const OwnDirectory directory;
  const std::string path = directory.file("bpe.spm");
  const std::vector<std::string> lines{"abab abba baab cab", "bac abc cabab bca"};
  train_vocabulary([&, n = size_t{0}](std::string_view& line) mutable { return n < 200 ? (line = lines[n++ % 2], true) : false; },
                   {.type = "bpe", .size = 18}, path);
  const Vocabulary own = Vocabulary::load(path);
  std::vector<std::string> list;
  for (int32_t id = 0; id < own.size(); ++id) list.push_back(own.piece(id));
  for (const char* piece : {"ba", "bb", "aba", "▁ab", "xy", "ca", "cabba", "▁b", "x", "z"})
    if (own.id_of(piece) < 0) list.emplace_back(piece);
  const Vocabulary v = Vocabulary::from_bytes(vocabulary_format::renumbered(own.bytes(), {list, {}}, "list"));
  for (const char* text : {"abbaabba cabbac", "bbb baba aabb", "xy abxy xyz", "cacaca bcabcab"}) {
    expect_looked_up(own, v, list, text);
    EXPECT_EQ(v.decode(v.encode("abba cab")), "abba cab");
  }
  EXPECT_EQ(v.decode(std::vector{v.id_of("xy"), v.id_of("xy")}), "xyxy");
  // Once more, as when a model that was exported is imported again in another order.
  std::reverse(list.begin(), list.end());
  const Vocabulary again = Vocabulary::from_bytes(vocabulary_format::renumbered(v.bytes(), {list, {}}, "list"));
  expect_looked_up(own, again, list, "abbaabba xy x cabbac");
  EXPECT_EQ(again.piece(again.id_of("xy")), "xy");
}

TEST_F(Renumbered, AddedTokensAreFoundFirst) {
  std::vector<std::string> more = pieces_;
  for (const char* piece : {"<ent>", "</ent>", "<e", "[SEP]", "Mannschaft"}) more.emplace_back(piece);
  const Vocabulary v = with(more, {{"<ent>", Found::added},
                                   {"</ent>", Found::added},
                                   {"<e", Found::added},
                                   {"[SEP]", Found::added_symbol},
                                   {"Mannschaft", Found::added}});
  const auto id = [&](const char* piece) { return v.id_of(piece); };
  const auto with_between = [&](std::vector<int32_t> ids, const std::vector<int32_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  };
  EXPECT_EQ(v.encode("<ent>Zwei</ent>"), with_between(with_between({id("<ent>")}, own_.encode("Zwei")), {id("</ent>")}));
  EXPECT_EQ(v.encode("Zwei <e Hunde"), with_between(with_between(own_.encode("Zwei"), {id("<e")}), own_.encode("Hunde")));
  EXPECT_EQ(v.encode("Mannschaft"), std::vector{id("Mannschaft")});
  EXPECT_EQ(v.encode("[SEP] "), std::vector{id("[SEP]")});
  const std::string text = "Ein <ent>Mann</ent>.";
  const EncodedLine line = v.encode_with_bytes(text);
  EXPECT_EQ(line.ids, v.encode(text));
  for (size_t i = 0; i < line.ids.size(); ++i)
    if (line.ids[i] == id("</ent>")) {
      EXPECT_EQ(text.substr(static_cast<size_t>(line.bytes[i].begin), 6), "</ent>");
    }
  EXPECT_THAT(v.pieces("<ent>[SEP]"), ElementsAre("<ent>", "[SEP]"));
  EXPECT_TRUE(v.knows("<ent>"));
  // Written with a space on both sides; symbols are not.
  EXPECT_EQ(v.decode(v.encode("Ein<ent>Mann</ent><ent>, der")), "Ein <ent> Mann </ent> <ent> , der");
  EXPECT_EQ(v.decode(v.encode("Ein[SEP]Mann")), "Ein Mann");
  const DecodedLine written = v.decode_with_bytes(v.encode("Mannschaft Mann"));
  EXPECT_EQ(written.text, "Mannschaft Mann");
  EXPECT_EQ(written.bytes.front(), (Range{0, 10}));
  EXPECT_EQ(written.bytes[1].begin, 10);
  EXPECT_EQ(written.bytes.back().end, 15);
}

TEST_F(Renumbered, TagsStandAtTheHead) {
  std::vector<std::string> more = pieces_;
  for (const char* piece : {">>fra<<", ">>cmn_Hans<<", "__de__", ">><<"}) more.emplace_back(piece);
  const Vocabulary v = with(more, {{"__de__", Found::tag}});
  const auto taken = [&](std::string_view text) {
    const int32_t id = v.take_tag(text);
    return std::pair(id < 0 ? "" : v.piece(id), std::string(text));
  };
  using Taken = std::pair<std::string, std::string>;
  EXPECT_EQ(taken(">>fra<< Ein Mann"), (Taken{">>fra<<", "Ein Mann"}));
  EXPECT_EQ(taken("  >>cmn_Hans<<Ein"), (Taken{">>cmn_Hans<<", "Ein"}));
  EXPECT_EQ(taken("__de__ Ein"), (Taken{"__de__", "Ein"}));
  EXPECT_EQ(taken("__de__Ein"), (Taken{"", "__de__Ein"}));
  EXPECT_EQ(taken(">>por<< Ein"), (Taken{"<unk>", "Ein"}));  // as in Marian and transformers
  EXPECT_EQ(taken(">> Ein <<"), (Taken{"", ">> Ein <<"}));
  EXPECT_EQ(taken("Ein >>fra<<"), (Taken{"", "Ein >>fra<<"}));
  EXPECT_EQ(taken(">>fra<<"), (Taken{">>fra<<", ""}));
  EXPECT_EQ(v.listed().unknown_tag(" >>por<< Ein"), ">>por<<");
  EXPECT_EQ(v.listed().unknown_tag(">>fra<< Ein"), "");
  EXPECT_EQ(own_.listed().unknown_tag(">>fra<< Ein"), "");
  EXPECT_EQ(v.encode(">>fra<< Ein"), own_.encode(">>fra<< Ein"));  // text, unless it is taken
  const int32_t fra = v.id_of(">>fra<<"), hans = v.id_of(">>cmn_Hans<<");
  EXPECT_THAT(v.listed().prefix_with(std::vector{7, fra}, hans), ElementsAre(7, hans));
  EXPECT_THAT(v.listed().prefix_with(std::vector{7}, hans), ElementsAre(7, hans));
  EXPECT_THAT(v.listed().prefix_with(std::vector{7}, -1), ElementsAre(7));
  EXPECT_THAT(v.listed().prefix_with(std::vector{fra}, v.unk()), ElementsAre(fra, v.unk()));
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
