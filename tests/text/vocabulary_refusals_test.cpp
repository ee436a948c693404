// Options that cannot be meant, text that is not there, and vocabulary files that are damaged or another program's.
#include <gmock/gmock.h>

#include <bit>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "tests/text/vocabulary.h"
#include "text/normalization.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(VocabularyTest, RefusesOptionsThatCannotBeMeant) {
  const std::vector<std::string> lines = nonsense_lines(10);
  const auto refusal = [&](const VocabularyOptions& options) {
    return test::message_of<ConfigError>([&] { train_vocabulary(source_of(lines), options, path()); });
  };
  EXPECT_THAT(refusal({.type = "word"}), HasSubstr("choose unigram or bpe"));
  EXPECT_THAT(refusal({.size = -1}), HasSubstr("size is -1"));
  EXPECT_THAT(refusal({.normalization = "nfd"}), HasSubstr("normalization is \"nfd\"; choose spaces, identity, nfkc, nmt_nfkc, "));
  EXPECT_THAT(refusal({.sample_lines = -1}), HasSubstr("sample is -1 lines"));
  EXPECT_THAT(refusal({.character_coverage = 2}), HasSubstr("coverage is 2"));
  EXPECT_THAT(refusal({.threads = 0}), HasSubstr("cannot be trained with 0 threads"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(VocabularyTest, SaysWhenThereIsNoText) {
  EXPECT_THAT(test::message_of<DataError>([&] { train({}); }), HasSubstr("none of the 0 lines read"));
  EXPECT_THAT(test::message_of<DataError>([&] { train({"", "", ""}); }), HasSubstr("none of the 3 lines read"));
  EXPECT_THAT(test::message_of<DataError>([&] { train({" ", "\u3000 \t"}); }), HasSubstr("none of the 2 lines read"));
}

TEST_F(VocabularyTest, OutlivesItsTrainer) {
  // Nothing is left of these characters after normalisation, which the trainer answers by ending its process.
  for (const char* type : {"unigram", "bpe"}) {
    options_.type = type;
    const std::string message = test::message_of<DataError>([&] { train({"\x01\x02", "\ufeff\x7f"}); });
    EXPECT_THAT(message, HasSubstr("SentencePiece could not train a vocabulary (")) << type;
  }
}

TEST_F(VocabularyTest, SaysWhenItCannotBeWrittenOrRead) {
  const std::vector<std::string> lines = nonsense_lines(100);
  EXPECT_THAT(test::message_of<IoError>([&] { train_vocabulary(source_of(lines), options_, path("no/such/place")); }),
              HasSubstr("no/such/"));
  EXPECT_THAT(test::message_of<IoError>([&] { Vocabulary::load(path("none")); }), StartsWith(path("none")));
  EXPECT_THAT(test::message_of<IoError>([&] { Vocabulary::load(directory_); }), StartsWith(directory_));
}

TEST_F(VocabularyTest, RefusesDamagedFiles) {
  train(nonsense_lines(100));
  const std::string good = bytes();
  EXPECT_THAT(test::message_of<DataError>([&] { Vocabulary::from_bytes(""); }), HasSubstr("the file is empty"));
  EXPECT_THAT(test::message_of<DataError>([&] { Vocabulary::from_bytes("hello", "my.model"); }), StartsWith("my.model: not a usable"));
  std::string flipped = good;
  flipped[good.size() / 2] ^= 4;
  EXPECT_THAT(test::message_of<DataError>([&] { Vocabulary::from_bytes(flipped); }), HasSubstr("checksum is wrong"));
  EXPECT_THAT(test::message_of<DataError>([&] { Vocabulary::from_bytes(good.substr(0, good.size() / 2)); }), HasSubstr("not a usable"));
}

// Fields by hand, as sentencepiece_model.proto has them: ModelProto.pieces 1, SentencePiece.piece 1, .score 2. The checksum is ours, so an
// attacker can make it too.
TEST_F(VocabularyTest, RefusesPiecesAndScoresThatCannotBeComputedWith) {
  train(nonsense_lines(100));
  std::string foreign = bytes();
  foreign.resize(foreign.size() - 12);  // our checksum field
  const auto varint = [](uint64_t value) {
    std::string digits;
    for (; value >= 0x80; value >>= 7) digits += static_cast<char>(value | 0x80);
    return digits + static_cast<char>(value);
  };
  const auto with = [&](const std::string& text, float score) {
    std::string piece = "\x0a" + varint(text.size()) + text + "\x15";
    for (int i = 0; i < 4; ++i) piece += static_cast<char>(std::bit_cast<uint32_t>(score) >> (8 * i));
    return foreign + "\x0a" + varint(piece.size()) + piece;
  };
  const auto refusal = [&](const std::string& model) {
    return test::message_of<DataError>([&] { Vocabulary::from_bytes(model, "my.model"); });
  };
  const auto size = Vocabulary::from_bytes(foreign).size();
  EXPECT_EQ(Vocabulary::from_bytes(with(std::string(4096, 'x'), -3)).size(), size + 1);
  const std::string huge = with(std::string(200000, 'x'), -3);
  for (const std::string& model : {huge, vocabulary_format::sealed(huge, 100)})
    EXPECT_THAT(refusal(model), HasSubstr(fmt::format("my.model: not a usable SentencePiece model (piece {} is 200000 bytes long", size)));
  for (const float score : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e38F})
    EXPECT_THAT(refusal(with("xyz", score)), HasSubstr(fmt::format("(the score of piece {} is ", size))) << score;
  // One of the pieces that are there: the bytes of its score follow its text.
  std::string changed = bytes();
  const size_t place = changed.find("\xe2\x96\x81", 64);
  const size_t at = changed.find('\x15', place) + 1;
  changed.replace(at, 4, std::string("\0\0\xc0\x7f", 4));
  changed.resize(changed.size() - 12);
  EXPECT_THAT(refusal(changed), HasSubstr("the score of piece "));
}

TEST_F(VocabularyTest, AcceptsModelsOfOtherProgramsIfTheirTablesAreSound) {
  train(nonsense_lines(100));
  std::string foreign = bytes();
  foreign.resize(foreign.size() - 12);  // our checksum field
  EXPECT_EQ(Vocabulary::from_bytes(foreign).size(), Vocabulary::load(path()).size());
  // The normalisation table takes nearly all of the file; bits flipped in it must be noticed or do no harm.
  Random random(3, 3);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = foreign;
    for (uint64_t flips = 1 + random.below(20); flips > 0; --flips)
      bad[random.below(bad.size())] ^= static_cast<char>(1 << random.below(8));
    try {
      Vocabulary::from_bytes(bad).encode("Grüne Häuser über der Straße ①½㎏ の");
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 30);
}

}  // namespace
}  // namespace starling
