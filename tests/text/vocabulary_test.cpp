// Vocabularies: round trips, seeded training, and sizes that cannot be.
#include "tests/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/normalization.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(VocabularyTest, GivesTextBack) {
  for (const char* type : {"unigram", "bpe"}) {
    options_.type = type;
    const std::vector<std::string> lines = nonsense_lines(500);
    const VocabularyReport report = train(lines);
    EXPECT_EQ(report.lines, 500);
    EXPECT_EQ(report.sampled, 500);
    const Vocabulary vocabulary = Vocabulary::load(path());
    EXPECT_EQ(vocabulary.size(), report.size);
    EXPECT_LE(report.size, options_.size);
    for (const std::string& line : lines) {
      const std::vector<int32_t> ids = vocabulary.encode(line);
      EXPECT_EQ(vocabulary.decode(ids), line);
      for (const int32_t id : ids) EXPECT_TRUE(id > 2 && id < vocabulary.size());
    }
    EXPECT_EQ(vocabulary.decode(vocabulary.encode("  grün \t Haus  ")), "grün Haus");
  }
}

TEST_F(VocabularyTest, HasTheSpecialIdsOfStarling) {
  train(nonsense_lines(100));
  const Vocabulary vocabulary = Vocabulary::load(path());
  EXPECT_EQ(vocabulary.unk(), 0);
  EXPECT_EQ(vocabulary.bos(), 1);
  EXPECT_EQ(vocabulary.eos(), 2);
  EXPECT_EQ(vocabulary.pad(), -1);
  EXPECT_EQ(vocabulary.piece(2), "</s>");
  EXPECT_TRUE(vocabulary.encode("").empty());
  EXPECT_TRUE(vocabulary.encode("  \t ").empty());
  EXPECT_EQ(vocabulary.decode({}), "");
  std::vector<int32_t> ids = vocabulary.encode("blue");
  ids.insert(ids.begin(), vocabulary.bos());
  ids.push_back(vocabulary.eos());
  EXPECT_EQ(vocabulary.decode(ids), "blue");
  EXPECT_THAT(vocabulary.encode("漢"), ::testing::Contains(vocabulary.unk()));
  for (const int32_t id : {-1, static_cast<int32_t>(vocabulary.size()), 1 << 30})
    EXPECT_THAT(test::message_of<DataError>([&] { vocabulary.decode(std::vector{id}); }), HasSubstr("outside the vocabulary"));
}

TEST_F(VocabularyTest, CutsLongLinesWithoutChangingThem) {
  const std::vector<std::string> lines = nonsense_lines(400);
  train(lines);
  const Vocabulary vocabulary = Vocabulary::load(path());
  std::string long_line;
  std::vector<int32_t> ids;
  for (const std::string& line : lines) {
    long_line += (long_line.empty() ? "" : " ") + line;
    for (const int32_t id : vocabulary.encode(line)) ids.push_back(id);
  }
  ASSERT_GT(long_line.size(), 20000u);
  EXPECT_EQ(vocabulary.encode(long_line), ids);
  EXPECT_EQ(vocabulary.decode(ids), long_line);
  std::string unknown;  // a megabyte without a space takes a moment, not hours
  while (unknown.size() < 1 << 20) unknown += "漢";
  for (const int32_t id : vocabulary.encode(unknown)) EXPECT_TRUE(id == vocabulary.unk() || vocabulary.piece(id) == "\u2581");
}

// Every byte of a line but spaces belongs to exactly one piece, in order; the pieces' own bytes stand there.
TEST_F(VocabularyTest, PiecesKnowTheirPlaces) {
  for (const char* type : {"unigram", "bpe"}) {
    options_.type = type;
    std::vector<std::string> lines = nonsense_lines(100);
    train(lines);
    const Vocabulary vocabulary = Vocabulary::load(path());
    lines.insert(lines.end(), {"", "  ", "  grün \t Haus  ", "漢字 über\u00A0alles", "x\xFF\xC3 y", "the\u200Bend", "walks"});
    std::string long_line;
    for (const std::string& line : nonsense_lines(200)) long_line += line + " ";
    lines.push_back(long_line);
    for (const std::string& line : lines) {
      const EncodedLine encoded = vocabulary.encode_with_bytes(line);
      EXPECT_EQ(encoded.ids, vocabulary.encode(line)) << line;
      ASSERT_EQ(encoded.ids.size(), encoded.bytes.size());
      int64_t at = 0;
      for (const Range& r : encoded.bytes) {
        EXPECT_GE(r.begin, at) << line;
        for (; at < r.begin; ++at) EXPECT_TRUE(std::isspace(static_cast<unsigned char>(line[static_cast<size_t>(at)]))) << line;
        EXPECT_GE(r.end, r.begin);
        at = r.end;
      }
      EXPECT_LE(at, static_cast<int64_t>(line.size()));

      const DecodedLine decoded = vocabulary.decode_with_bytes(encoded.ids);
      EXPECT_EQ(decoded.text, vocabulary.decode(encoded.ids));
      ASSERT_EQ(decoded.bytes.size(), encoded.ids.size());
      std::string joined;
      for (const Range& r : decoded.bytes) joined += decoded.text.substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.count()));
      EXPECT_EQ(joined, decoded.text);
    }
    const std::string line = "walks über";
    const EncodedLine encoded = vocabulary.encode_with_bytes(line);
    for (size_t i = 0; i < encoded.ids.size(); ++i) {
      std::string piece = vocabulary.piece(encoded.ids[i]);
      if (piece.starts_with("\u2581")) piece.erase(0, 3);
      std::string bytes = line.substr(static_cast<size_t>(encoded.bytes[i].begin), static_cast<size_t>(encoded.bytes[i].count()));
      if (bytes.starts_with(" ")) bytes.erase(0, 1);
      EXPECT_EQ(bytes, piece);
    }
    const int32_t eos = vocabulary.eos();
    EXPECT_EQ(vocabulary.decode_with_bytes(std::vector{eos}).bytes, std::vector<Range>{Range{}});
    EXPECT_THAT(test::message_of<DataError>([&] { vocabulary.decode_with_bytes(std::vector{-1}); }), HasSubstr("outside the vocabulary"));
  }
}

TEST_F(VocabularyTest, TravelsAsBytes) {
  train(nonsense_lines(100));
  const Vocabulary loaded = Vocabulary::load(path());
  EXPECT_EQ(loaded.bytes(), bytes());
  const Vocabulary copy = Vocabulary::from_bytes(loaded.bytes());
  EXPECT_EQ(copy.hash(), loaded.hash());
  EXPECT_EQ(copy.encode("running über"), loaded.encode("running über"));
}

// 1,000 sentences with characters that are not seen, or with decomposed letters, are cut as the clean ones; each piece knows where it is.
TEST_F(VocabularyTest, CutsInvisibleAndDecomposedTextAsTheCleanOne) {
  const std::pair<std::string, std::string> decomposed[] = {{"ü", "u\u0308"}, {"ä", "a\u0308"}, {"ß", "ß"}};
  const char* const invisible[] = {"\u00AD", "\u034F", "\u061C", "\u200B", "\u200C", "\u200D", "\u200E", "\u200F",
                                   "\u202A", "\u202C", "\u202E", "\u2060", "\u2066", "\uFE0E", "\uFE0F", "\U000E0101"};
  for (const char* type : {"unigram", "bpe"}) {
    options_.type = type;
    const std::vector<std::string> lines = nonsense_lines(1000);
    train(lines);
    const Vocabulary vocabulary = Vocabulary::load(path());
    Random random(41, 0);
    for (const std::string& line : lines) {
      std::string dirty = line;
      for (const auto& [from, to] : decomposed)
        for (size_t at = dirty.find(from); at != std::string::npos; at = dirty.find(from, at + to.size()))
          dirty.replace(at, from.size(), to);
      for (uint64_t n = 1 + random.below(5); n > 0; --n) {
        size_t at = random.below(dirty.size() + 1);
        while (at < dirty.size() && is_continuation(static_cast<unsigned char>(dirty[at]))) ++at;
        dirty.insert(at, invisible[random.below(std::size(invisible))]);
      }
      const EncodedLine encoded = vocabulary.encode_with_bytes(dirty);
      ASSERT_EQ(encoded.ids, vocabulary.encode(line)) << dirty;
      EXPECT_EQ(encoded.ids, vocabulary.encode(dirty));
      EXPECT_THAT(vocabulary.encode_as_it_stands(dirty), Contains(vocabulary.unk()));
      EXPECT_EQ(encoded.bytes.back().end, static_cast<int64_t>(dirty.size()));
      for (size_t i = 0; i < encoded.ids.size(); ++i) {
        EXPECT_EQ(encoded.bytes[i].begin, i > 0 ? encoded.bytes[i - 1].end : 0);
        const Range& r = encoded.bytes[i];
        const auto ids = vocabulary.encode(dirty.substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.count())));
        std::string piece = vocabulary.piece(encoded.ids[i]);
        if (piece.starts_with("\u2581")) piece.erase(0, 3);
        EXPECT_EQ(vocabulary.decode(ids), piece) << dirty;
      }
    }
  }
}

// What the vocabulary has learnt stays: joiners, decomposed letters, even soft hyphens.
TEST_F(VocabularyTest, KeepsInvisibleAndDecomposedTextThatItKnows) {
  const std::string known = "\u0646\u200C\u0645 \u0915\u094D\u200D\u0937 co\u00ADop u\u0308ber";
  std::vector<std::string> lines = nonsense_lines(200);
  for (int i = 0; i < 20; ++i) lines.push_back(known);
  options_.size = 120;
  options_.character_coverage = 1;
  train(lines);
  const Vocabulary vocabulary = Vocabulary::load(path());
  EXPECT_EQ(vocabulary.encode(known), vocabulary.encode_as_it_stands(known));
  EXPECT_EQ(vocabulary.decode(vocabulary.encode(known)), known);
  // Also beside what it does not know; of "a" and the two dots each has a piece.
  EXPECT_EQ(vocabulary.decode(vocabulary.encode(known + " wa\u2060lks a\u0308 \u6F22")), known + " walks a\u0308  \u2047 ");
  for (const char* text : {"\u6F22 Haus", "x\xFF", "", "\uFF21"}) EXPECT_EQ(vocabulary.encode(text), vocabulary.encode_as_it_stands(text));
  EXPECT_TRUE(vocabulary.knows("\u200C"));
  EXPECT_FALSE(vocabulary.knows("\u200B"));
}

// The finding: SentencePiece's own rule makes full-width and compatibility forms ordinary ones, so they can never be produced.
TEST_F(VocabularyTest, KeepsEveryVisibleCharacter) {
  const std::string wide = "\uff11\uff12\uff13\uff21\uff22\uff1f \u2460 \ufb01n \u00bd m\u00b2 \u2122 \u2026 \uff76\uff9e e\u0301 \u212b";
  const std::string joined = "\u0646\u200c\u0645 \u0915\u094d\u200d\u0937 \u0e01\u200b\u0e02";  // joiners and breaks that writing needs
  std::vector<std::string> lines = nonsense_lines(200);
  for (int i = 0; i < 20; ++i) lines.push_back(wide), lines.push_back(joined);
  options_.size = 200;
  options_.character_coverage = 1;
  const auto back = [&](const std::string& text) {
    const Vocabulary vocabulary = Vocabulary::load(path());
    return vocabulary.decode(vocabulary.encode(text));
  };
  for (const char* type : {"unigram", "bpe"}) {
    options_.type = type;
    train(lines);
    EXPECT_EQ(back(wide), wide);
    EXPECT_EQ(back(joined), joined);
    EXPECT_EQ(back("\u3000blue\u00a0\u202f\tHaus \u2009\x01wa\x7flks\u0085\ufeff\u2581"), "blue Haus walks");
  }
  options_.normalization = "nmt_nfkc";
  train(lines);
  EXPECT_EQ(back("\uff11\uff12\uff13 \u00bd"), "123 1\u20442");
  options_.normalization = "nfkc_cf";
  train(lines);
  EXPECT_EQ(back("\uff21 BLUE"), "a blue");
  options_.normalization = "identity";
  train(lines);
  EXPECT_EQ(back(wide), wide);
  EXPECT_EQ(vocabulary_format::settings(bytes())->normalization, "identity");
  options_.normalization = "spaces";
  train(lines);
  EXPECT_EQ(vocabulary_format::settings(bytes())->normalization, "spaces");
}

TEST_F(VocabularyTest, DescribesEveryNormalization) {
  std::set<std::string> seen;
  for (const char* name : kNormalizations) seen.insert(describe_normalization(name));
  EXPECT_EQ(seen.size(), std::size(kNormalizations));
}

// Repeated lines are taken once and counted.
TEST_F(VocabularyTest, WeighsRepeatedLines) {
  std::vector<std::string> lines = nonsense_lines(50), repeated;
  for (int64_t i = 0; i < 300; ++i) repeated.push_back(lines[static_cast<size_t>(i * i) % lines.size()]);
  const VocabularyReport report = train(repeated);
  EXPECT_EQ(report.lines, 300);
  EXPECT_EQ(report.stands_for, 300);
  EXPECT_EQ(report.sampled, std::set<std::string>(repeated.begin(), repeated.end()).size());
  // Counts weigh: a word of one line that comes ten thousand times gets a piece of its own before all others.
  options_.size = 40;
  lines.push_back("zyx\tzyx");
  train(lines, "once");
  for (int i = 0; i < 10000; ++i) lines.push_back("zyx\tzyx");
  train(lines, "often");
  EXPECT_GT(Vocabulary::load(path("once")).encode("zyx zyx").size(), 2u);
  EXPECT_EQ(Vocabulary::load(path("often")).encode("zyx zyx").size(), 2u);
}

// A machine with little memory takes less, and says so; the same vocabulary comes out wherever that is the bound.
TEST_F(VocabularyTest, TakesASampleThatFitsInMemory) {
  std::vector<std::string> lines = nonsense_lines(20000);  // 1.3 MB
  for (size_t i = 0; i < lines.size(); ++i) lines[i] += std::to_string(i);
  std::vector<std::string> said;
  VocabularyWatch watch;
  watch.say = [&](const std::string& line) { said.push_back(line); };
  watch.now = [] { return 0.0; };
  options_.type = "bpe";
  options_.memory_bytes = 50 << 20;  // half of it, by 25 bytes a byte: 1.05 MB
  const VocabularyReport report = train_vocabulary(source_of(lines), options_, path(), watch);
  EXPECT_EQ(report.lines, 20000);
  EXPECT_GT(report.sampled, 14000);
  EXPECT_LT(report.sampled, 19500);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("different lines, 1 MB; a larger one does not fit into half of 50 MiB"));
}

// The clock of the test runs three seconds a look, so that a short training has much to tell.
TEST_F(VocabularyTest, TellsHowFarItIs) {
  const std::vector<std::string> lines = nonsense_lines(8192);
  for (const std::string type : {"unigram", "bpe"}) {
    options_.type = type;
    double time = 0;
    std::vector<std::string> said;
    VocabularyWatch watch;
    watch.say = [&](const std::string& line) { said.push_back(line); };
    watch.fraction = [] { return 0.5; };
    watch.now = [&] { return time += 3; };
    train_vocabulary(source_of(lines), options_, path(), watch);
    EXPECT_THAT(said, Contains(HasSubstr(" lines read, 50 %, 0:0"))) << type;
    EXPECT_THAT(said, Contains(HasSubstr("vocabulary: SentencePiece ")));
  }
}

TEST_F(VocabularyTest, IsAPureFunctionOfTheSeed) {
  const std::vector<std::string> lines = nonsense_lines(3000);
  options_.sample_lines = 40;
  EXPECT_EQ(train(lines, "a").sampled, 40);
  EXPECT_EQ(train(lines, "b").lines, 3000);
  EXPECT_EQ(bytes("a"), bytes("b"));
  options_.seed = 2;
  train(lines, "c");
  EXPECT_NE(bytes("a"), bytes("c"));
}

TEST_F(VocabularyTest, IsSmallerWhenTheTextDoesNotHoldSoManyPieces) {
  options_.size = 5000;
  for (const char* type : {"unigram", "bpe"}) {
    options_.type = type;
    const VocabularyReport report = train(nonsense_lines(20));
    EXPECT_LT(report.size, 200);
    EXPECT_EQ(Vocabulary::load(path()).size(), report.size);
  }
}

TEST_F(VocabularyTest, NamesASizeThatWorks) {
  const std::vector<std::string> lines = nonsense_lines(100);
  options_.size = 10;
  const std::string message = test::message_of<ConfigError>([&] { train(lines); });
  const std::string marker = "choose a size of at least ";
  ASSERT_THAT(message, HasSubstr(marker));
  options_.size = std::stoll(message.substr(message.find(marker) + marker.size()));
  EXPECT_EQ(train(lines).size, options_.size);
}

}  // namespace
}  // namespace starling
