// Sampled segmentations against SentencePiece itself: its scores, its best segmentations, and what its own sampling draws on average.
#include "text/subword_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"

namespace starling {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

// Words of one to three syllables, so that there are pieces of all lengths.
std::vector<std::string> sentences(int64_t count) {
  static const char* const syllables[] = {"ka", "lo", "mi", "tür", "ße", "ran", "o", "stel", "ön", "qui", "ba", "e"};
  Random random(1, 0);
  std::vector<std::string> lines;
  while (count-- > 0) {
    std::string& line = lines.emplace_back();
    for (int i = 0; i < 8; ++i) {
      for (uint64_t parts = 1 + random.below(3); parts > 0; --parts) line += syllables[random.below(std::size(syllables))];
      line += i == 7 ? "." : " ";
    }
  }
  return lines;
}

class SubwordSamplerTest : public ::testing::Test {
 protected:
  SubwordSamplerTest() : lines_(sentences(300)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "starling-sampler-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~SubwordSamplerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Vocabulary train(const std::string& type) {
    const std::string path = directory_ + "/" + type;
    const auto source = [this, at = size_t{0}](std::string_view& line) mutable {
      if (at == lines_.size()) return false;
      line = lines_[at++];
      return true;
    };
    train_vocabulary(source, {.type = type, .size = 60}, path);
    Vocabulary vocabulary = Vocabulary::load(path);
    EXPECT_TRUE(processor_.LoadFromSerializedProto(vocabulary.bytes()).ok());
    return vocabulary;
  }
  // All segmentations of a text (with ▁), each with the sum of SentencePiece's scores.
  void segmentations(const std::string& text, Ids begin, double score, std::map<Ids, double>& all) const {
    if (text.empty()) all[begin] = score;
    for (size_t size = 1; size <= text.size(); ++size) {
      const int id = processor_.PieceToId(text.substr(0, size));
      if (id == processor_.unk_id()) continue;
      Ids more = begin;
      more.push_back(id);
      segmentations(text.substr(size), more, score + static_cast<double>(processor_.GetScore(id)), all);
    }
  }
  // Pieces a line of all lines, sampled by SentencePiece and by us.
  std::pair<double, double> mean_pieces(const Vocabulary& vocabulary, double alpha) {
    constexpr int kDraws = 40;
    const SubwordSampler sampler(vocabulary, alpha);
    double theirs = 0, ours = 0;
    uint64_t stream = 0;
    for (const std::string& line : lines_) {
      const Ids best = vocabulary.encode(line);
      for (int draw = 0; draw < kDraws; ++draw) {
        std::vector<int> ids;
        EXPECT_TRUE(processor_.SampleEncode(line, -1, static_cast<float>(alpha), &ids).ok());
        Random random(7, stream++);
        theirs += static_cast<double>(ids.size()), ours += static_cast<double>(sampler.sample(best, random).size());
      }
    }
    const double lines = static_cast<double>(lines_.size()) * kDraws;
    return {theirs / lines, ours / lines};
  }

  std::vector<std::string> lines_;
  std::string directory_;
  sentencepiece::SentencePieceProcessor processor_;
};

TEST_F(SubwordSamplerTest, GivesTheSameTextInOtherPieces) {
  for (const char* type : {"unigram", "bpe"}) {
    const Vocabulary vocabulary = train(type);
    const SubwordSampler sampler(vocabulary, 0.3);
    int64_t others = 0;
    for (const std::string& line : lines_) {
      Ids ids = vocabulary.encode(line);
      ids.push_back(vocabulary.eos());
      Random random(3, 5), again(3, 5);
      const Ids sampled = sampler.sample(ids, random);
      EXPECT_EQ(vocabulary.decode(sampled), line);
      EXPECT_EQ(sampled.back(), vocabulary.eos());
      EXPECT_EQ(sampled, sampler.sample(ids, again));
      others += sampled != ids;
    }
    EXPECT_GT(others, 250) << type;
  }
}

TEST_F(SubwordSamplerTest, DrawsUnigramSegmentationsByTheirProbability) {
  const Vocabulary vocabulary = train("unigram");
  constexpr double kAlpha = 0.4;
  constexpr int kDraws = 20000;
  const Ids best = vocabulary.encode("kalostel");
  std::map<Ids, double> all;
  segmentations("\u2581kalostel", {}, 0, all);
  ASSERT_GT(all.size(), 10u);
  double sum = 0;
  for (auto& [ids, score] : all) sum += score = std::exp(kAlpha * score);
  std::map<Ids, int> drawn;
  const SubwordSampler sampler(vocabulary, kAlpha);
  Random random(1, 1);
  for (int i = 0; i < kDraws; ++i) ++drawn[sampler.sample(best, random)];
  for (const auto& [ids, weight] : all) {
    const double p = weight / sum;
    EXPECT_NEAR(drawn[ids], p * kDraws, 5 * std::sqrt(p * (1 - p) * kDraws) + 1);
  }
  EXPECT_EQ(drawn.size(), all.size()) << "only segmentations that there are";
}

TEST_F(SubwordSamplerTest, VariesAsSentencePiecesOwnSampling) {
  for (const char* type : {"unigram", "bpe"}) {
    const Vocabulary vocabulary = train(type);
    for (const double alpha : {0.1, 0.5}) {
      const auto [theirs, ours] = mean_pieces(vocabulary, alpha);
      EXPECT_NEAR(ours, theirs, 0.01 * theirs) << type << " " << alpha;
    }
  }
}

TEST_F(SubwordSamplerTest, BpeWithoutAndWithAllMergesLeftOut) {
  const Vocabulary vocabulary = train("bpe");
  const SubwordSampler none(vocabulary, 1e-12), all(vocabulary, 1);
  Random random(1, 1);
  for (const std::string& line : lines_) {
    const Ids best = vocabulary.encode(line);
    EXPECT_EQ(none.sample(best, random), best);
    for (const int32_t id : all.sample(best, random)) EXPECT_LE(vocabulary.piece(id).size(), 3u) << "one character";
  }
}

TEST_F(SubwordSamplerTest, KeepsWhatIsNotText) {
  for (const char* type : {"unigram", "bpe"}) {
    const Vocabulary vocabulary = train(type);
    const Ids fixed{vocabulary.bos(), vocabulary.unk(), vocabulary.unk(), vocabulary.eos()};
    Random random(1, 1);
    EXPECT_EQ(SubwordSampler(vocabulary, 0.1).sample(fixed, random), fixed);
    Ids mixed = vocabulary.encode("kalo 漢 türmi");
    const Ids sampled = SubwordSampler(vocabulary, 0.1).sample(mixed, random);
    EXPECT_EQ(std::count(sampled.begin(), sampled.end(), vocabulary.unk()), 1);
    EXPECT_EQ(vocabulary.decode(sampled), vocabulary.decode(mixed));
  }
}

TEST_F(SubwordSamplerTest, RefusesWhatCannotBeSampled) {
  const auto refusal = [](const Vocabulary& vocabulary, double alpha) -> std::string {
    try {
      const SubwordSampler sampler(vocabulary, alpha);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal(train("bpe"), 1.5), HasSubstr("choose 0 to 1"));
  EXPECT_THAT(refusal(train("unigram"), -1), HasSubstr("must be above 0"));
  EXPECT_EQ(refusal(train("unigram"), 1.5), "no error");
}

// Each token lies over the letters that it had, in any segmentation.
TEST_F(SubwordSamplerTest, PlacesCoverTheSameLetters) {
  const Vocabulary vocabulary = train("unigram");
  const SubwordSampler sampler(vocabulary, 0.1);
  Random random(1, 1);
  for (const std::string& line : lines_) {
    Ids before = vocabulary.encode(line);
    before.push_back(vocabulary.eos());
    const Ids now = sampler.sample(before, random);
    const auto ends = [&](const Ids& ids) {
      std::vector<size_t> all{0};
      for (const int32_t id : ids) all.push_back(all.back() + vocabulary.piece(id).size());
      return all;
    };
    const std::vector<size_t> was = ends(before), is = ends(now);
    ASSERT_EQ(was.back(), is.back());
    const std::vector<TokenRange> places = sampler.places(before, now);
    ASSERT_EQ(places.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i)
      for (size_t k = 0; k < now.size(); ++k)
        EXPECT_EQ(places[i].first <= k && k <= places[i].last, is[k] < was[i + 1] && was[i] < is[k + 1]) << line << " " << i << " " << k;
    EXPECT_EQ(places.back().first, now.size() - 1);
  }
}

}  // namespace
}  // namespace starling
