// Capitals, typing errors and joined sentences: what becomes of a pair, how often, and that a resumed run sees the same.
#include "data/text_noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/batches.h"
#include "tests/data/fixtures.h"
#include "text/unicode.h"

namespace starling {
namespace {

using test::TemporaryDirectory;
using testing::HasSubstr;

TEST(LetterCases, AreThoseOfTheirAlphabets) {
  const auto upper = [](std::u32string_view text) { return to_upper(text); };
  EXPECT_EQ(upper(U"straße über ἀρχῆς, ďábel; i ı 1ª ჯ"), U"STRAßE ÜBER ἈΡΧῆΣ, ĎÁBEL; I ı 1ª ჯ");
  EXPECT_EQ(title_case_utf8("ein über-Mann „läuft“ (so)"), "Ein Über-Mann „Läuft“ (So)");
  EXPECT_EQ(upper_case_utf8("die „kleine“ Straße, <b>fett</b> um 3pm bei a@b.de"), "DIE „KLEINE“ STRAßE, <b>fett</b> UM 3pm BEI a@b.de");
  for (char32_t c = 0; c < 0x500; ++c)  // back and forth
    if (const std::u32string capital = upper(std::u32string(1, c)); capital[0] != c && c != 0x3C2) {
      EXPECT_EQ(to_lower(capital), std::u32string(1, c)) << static_cast<uint32_t>(c);
    }
}

TEST(Typos, AreFewAndOfAllKinds) {
  Random random(3, 3);
  const std::string text = "a quick brown fox jumps over 13 lazy dogs";
  std::set<std::string> seen;
  std::multiset<int64_t> lengths;
  for (int i = 0; i < 500; ++i) {
    const std::string changed = with_typos(text, random);
    EXPECT_THAT(changed, HasSubstr("13"));
    EXPECT_NEAR(static_cast<double>(changed.size()), static_cast<double>(text.size()), 5);
    seen.insert(changed);
    lengths.insert(static_cast<int64_t>(changed.size()));
  }
  EXPECT_GT(seen.size(), 480u);
  EXPECT_GT(lengths.count(41), 50u);
  EXPECT_GT(lengths.count(40), 50u);
  EXPECT_GT(lengths.count(42), 30u);
  EXPECT_EQ(with_typos("", random), "");
  EXPECT_EQ(with_typos("1 2 <tag> http://x.y", random), "1 2 <tag> http://x.y");
  for (int i = 0; i < 50; ++i) EXPECT_NE(with_typos("ok 12", random), "ok 12");
}

class NoisyBatches : public testing::Test {
 protected:
  NoisyBatches() {
    const std::string source = test::sentences(1, 400), target = test::sentences(2, 400);
    data_.train = {{directory_.write("s", source), directory_.write("t", target), ""}, {directory_.path("s"), directory_.path("t"), ""}};
    // Pieces for capitals.
    std::string both = source + encode_utf8(to_upper(decode_utf8(source + target)));
    std::vector<std::string> lines;
    for (size_t at = 0, end; at < both.size() && (end = both.find('\n', at)) != both.npos; at = end + 1)
      lines.push_back(both.substr(at, end - at));
    size_t next = 0;
    train_vocabulary(
        [&](std::string_view& line) {
          if (next == lines.size()) return false;
          line = lines[next++];
          return true;
        },
        {.size = 90, .character_coverage = 1, .threads = 1}, directory_.path("v"));
    vocabulary_.emplace(Vocabulary::load(directory_.path("v")));
    store_.emplace(TokenStore::open_or_build(*real_file_system(), directory_.path("store"), data_, *vocabulary_, *vocabulary_, {}));
  }
  BatchOptions options(const NoiseShares& shares) {
    return {.batch_tokens = 200,
            .noise = std::make_shared<TextNoise>(shares, *vocabulary_, *vocabulary_, std::vector<std::vector<int32_t>>(2), int64_t{60})};
  }
  std::vector<std::pair<std::string, std::string>> texts(const Batch& batch) const {
    std::vector<std::pair<std::string, std::string>> all;
    for (size_t b = 0; b < batch.sample_ids.size(); ++b) {
      const auto text = [&](const PackedTokens& side) {
        EXPECT_EQ(side.tokens[static_cast<size_t>(side.offsets[b + 1] - 1)], vocabulary_->eos());
        return vocabulary_->decode(std::span(side.tokens).subspan(side.offsets[b], side.offsets[b + 1] - side.offsets[b] - 1));
      };
      all.emplace_back(text(batch.source), text(batch.target));
    }
    return all;
  }
  std::vector<std::pair<std::string, std::string>> epoch(BatchStream& stream, int64_t number) const {
    std::vector<std::pair<std::string, std::string>> all;
    stream.seek({number, 0});
    while (stream.position().epoch == number)
      for (auto& pair : texts(stream.next())) all.push_back(std::move(pair));
    return all;
  }

  TemporaryDirectory directory_;
  DataOptions data_;
  std::optional<Vocabulary> vocabulary_;
  std::optional<TokenStore> store_;
};

TEST_F(NoisyBatches, HaveTheirSharesOfCapitalsAndTypos) {
  BatchStream plain(*store_, {.batch_tokens = 200}), noisy(*store_, options({.upper_case = 0.25, .title_case = 0.25, .typos = 0.2}));
  const auto before = epoch(plain, 0), after = epoch(noisy, 0), again = epoch(noisy, 1);
  ASSERT_EQ(before.size(), after.size());
  int upper = 0, title = 0, typos = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string capitals = encode_utf8(to_upper(decode_utf8(before[i].second)));
    upper += after[i].second == capitals && after[i].second != before[i].second;
    title += after[i].second == title_case_utf8(before[i].second) && after[i].second != before[i].second;
    const std::string same[] = {before[i].first, encode_utf8(to_upper(decode_utf8(before[i].first))), title_case_utf8(before[i].first)};
    typos += std::find(std::begin(same), std::end(same), after[i].first) == std::end(same);
  }
  EXPECT_NEAR(upper, 200, 45);
  EXPECT_NEAR(title, 200, 45);
  EXPECT_NEAR(typos, 160, 60);
  EXPECT_NE(after, again);
  EXPECT_EQ(after, epoch(noisy, 0));
}

TEST_F(NoisyBatches, JoinPairsOfACorpus) {
  BatchStream plain(*store_, {.batch_tokens = 200}), noisy(*store_, options({.merge = 0.5}));
  const auto before = epoch(plain, 0), after = epoch(noisy, 0);
  EXPECT_LT(after.size(), 0.9 * static_cast<double>(before.size()));
  std::multiset<std::string> words, joined;  // both sides, pair by pair
  const auto add = [](const std::string& text, std::multiset<std::string>& to) {
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
      end = std::min(text.find(' ', at), text.size());
      to.insert(text.substr(at, end - at));
    }
  };
  for (const auto& [source, target] : before) add(source, words), add(target, words);
  for (const auto& [source, target] : after) add(source, joined), add(target, joined);
  EXPECT_EQ(words, joined);
  // Two pairs in a row, each with its own translation.
  std::map<std::string, std::string> translation(before.begin(), before.end());
  size_t whole = 0;
  for (const auto& [source, target] : after)
    for (const auto& [first, its] : translation)
      if (source.starts_with(first + " ") && target.starts_with(its + " "))
        if (const auto rest = translation.find(source.substr(first.size() + 1)); rest != translation.end())
          whole += target == its + " " + rest->second;
  EXPECT_GT(whole, 30u);
}

TEST_F(NoisyBatches, KeepTagsAndWhatCannotBeMadeAgain) {
  const int32_t tag = 9;
  const TextNoise noise({.upper_case = 1}, *vocabulary_, *vocabulary_, {{tag}}, 60);
  Batch batch;
  std::vector<int32_t> source = vocabulary_->encode_as_it_stands("ka lo"), target = source;
  source.insert(source.begin(), tag);
  source.push_back(vocabulary_->eos()), target.push_back(vocabulary_->eos());
  batch.source.append(source.data(), source.data() + source.size()), batch.target.append(target.data(), target.data() + target.size());
  batch.sample_ids = {4};
  Random random(1, 1);
  EXPECT_FALSE(noise.change_last(batch, 0, random));
  EXPECT_EQ(batch.source.tokens.front(), tag);
  EXPECT_EQ(vocabulary_->decode(std::span(batch.target.tokens).first(batch.target.tokens.size() - 1)), "KA LO");
  Batch unknown;
  const std::vector<int32_t> odd{vocabulary_->unk(), vocabulary_->eos()};
  unknown.source.append(odd.data(), odd.data() + 2), unknown.target.append(odd.data(), odd.data() + 2);
  unknown.sample_ids = {1};
  noise.change_last(unknown, 0, random);
  EXPECT_EQ(unknown.source.tokens, odd);
  // Nor does one side alone change.
  Batch half;
  half.source.append(target.data(), target.data() + target.size()), half.target.append(odd.data(), odd.data() + 2);
  half.sample_ids = {1};
  noise.change_last(half, 0, random);
  EXPECT_EQ(half.source.tokens, target);
}

}  // namespace
}  // namespace starling
