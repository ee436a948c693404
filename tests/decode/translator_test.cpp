// How many sentences a translator works on at once: as many as asked for, fewer where memory is short and it may choose, never more than
// the ranks of a host can each have. How many there were is told by the decoder's steps: each batch takes as many as its translations.
#include "decode/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "decode/quantization.h"
#include "models/model.h"
#include "tests/decode/small_vocabulary.h"

namespace starling {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLength = 5;  // tokens of each translation

class TranslatorMemory : public testing::Test {
 protected:
  TranslatorMemory() {
    ModelConfig config = model_preset("transformer-tiny");
    config.width = 16, config.feed_forward = 32, config.heads = 2, config.encoder_layers = config.decoder_layers = 1;
    model_ = make_model(config, vocabularies_.sizes(), *backend_, 1, true);
  }
  Translator translator(int64_t batch, SearchMemory memory) const {
    Translator t(*model_, vocabularies_, search_, batch);
    t.set_memory(std::move(memory));
    return t;
  }
  // Bytes that searches of so many sentences at once take.
  int64_t need(int64_t sentences) const {
    const auto tokens = static_cast<int64_t>(vocabularies_.source().encode(lines_[0]).size()) + 1;
    return search_need(model_->config(), model_->vocabulary(), with_prefixes(search_, vocabularies_), sentences, sentences * tokens, 4)
        .total();
  }
  static SearchMemory memory(int64_t bytes, int processes, bool fewer) {
    return {.processes = processes, .fewer_at_once = fewer, .usable = [bytes] { return UsableMemory{bytes, "the test's bound"}; }};
  }
  static std::vector<std::string> texts(const std::vector<std::vector<Translation>>& translations) {
    std::vector<std::string> all;
    for (const auto& list : translations) all.push_back(list.front().text);
    return all;
  }

  const Vocabularies vocabularies_ = small_vocabulary();
  const std::unique_ptr<Backend> backend_ = make_backend("cpu:f32", 1);
  std::unique_ptr<Model> model_;
  const SearchOptions search_{.beam = 3, .max_length_factor = 0, .max_length_offset = kLength, .fixed_length = true};
  const std::vector<std::string> lines_ = std::vector<std::string>(16, "abba baab ab");
};

// With a beam for all pieces every piece is a translation of one token, the unknown one too.
TEST_F(TranslatorMemory, TheUnknownSymbolIsInTranslationsOnlyWhereItIsAllowed) {
  SearchOptions search = search_;
  search.beam = search.n_best = vocabularies_.target().size(), search.max_length_offset = 1, search.min_length = 0;
  for (const bool allowed : {false, true}) {
    search.allow_unknown = allowed;
    Translator t(*model_, vocabularies_, search);
    const std::vector<Translation> all = t.translate(lines_)[0];
    const auto unknown = [](const Translation& each) { return each.text.find("\u2047") != std::string::npos; };
    EXPECT_EQ(std::count_if(all.begin(), all.end(), unknown), allowed ? 1 : 0);
    EXPECT_EQ(static_cast<int64_t>(all.size()), search.beam - (allowed ? 1 : 2)) << "without the end of sentence";
  }
}

// What is known without the model comes back whatever it is; the other lines are translated as they are alone.
TEST_F(TranslatorMemory, LinesOfTheMemoryAndOfOtherLanguagesAreNotTranslated) {
  const std::string german = "Ein Mann fährt mit seinem roten Fahrrad durch die Stadt.";
  const std::vector<std::string> mixed{lines_[0], "aab  ba", german, lines_[0]};
  Translator t(*model_, vocabularies_, search_);
  const std::vector<std::string> without = texts(t.translate(mixed));
  EXPECT_NE(without[2], german);
  t.set_translation_memory(TranslationMemory::parse("aab ba\tthe one of the memory", "memory", "", ""));
  t.set_source_languages({"en"}, "de");
  EXPECT_THAT(texts(t.translate(mixed)), testing::ElementsAre(without[0], "the one of the memory", german, without[3]));
  EXPECT_EQ(t.from_memory(), 1);
  EXPECT_EQ(t.in_other_languages(), 1);
  t.set_source_languages({"en", "de"}, "fr");
  EXPECT_EQ(texts(t.translate(mixed))[2], without[2]);
}

// Pieces as they are written in decode.yml become numbers; those that are not in the vocabulary are named.
TEST_F(TranslatorMemory, SuppressedPiecesAreInNoTranslation) {
  const Vocabulary& v = vocabularies_.target();
  SearchOptions search = search_;
  search.beam = search.n_best = v.size(), search.max_length_offset = 1, search.min_length = 0;
  const std::string first = v.piece(4), second = v.piece(5);
  search.suppress = fmt::format(" {} ||| {}  {} ||| ", first, second, first);
  EXPECT_EQ(with_prefixes(search, vocabularies_).suppress_ids, (std::vector<std::vector<int32_t>>{{4}, {5, 4}}));
  Translator t(*model_, vocabularies_, search);
  EXPECT_EQ(static_cast<int64_t>(t.translate(lines_)[0].size()), search.beam - 3) << "without end, unknown symbol and the first piece";
  for (const auto& [pieces, message] :
       {std::pair(first + " nowhere", "suppress: the vocabulary has no piece 'nowhere'"), {"</s>", "end of sentence"}}) {
    search.suppress = pieces;
    try {
      with_prefixes(search, vocabularies_);
      FAIL() << pieces;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr(message));
    }
  }
}

// Also within a batch, so that a few long lines are not waited for in silence.
TEST_F(TranslatorMemory, ProgressIsToldAtEveryStep) {
  Translator t = translator(8, memory(int64_t{1} << 30, 1, false));
  std::vector<double> shares;
  t.set_watch({.stop = {}, .translated = [&](double share) { shares.push_back(share); }});
  t.translate(lines_);  // two batches
  EXPECT_GE(shares.size(), 2u * kLength);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0);
  EXPECT_GT(shares.at(2), 0);
  EXPECT_LT(shares.at(2), 0.5) << "within the first batch";
  EXPECT_EQ(shares.back(), 1);
}

TEST_F(TranslatorMemory, BatchesAreHalvedUntilTheyFit) {
  Translator ample = translator(16, memory(need(16), 1, true));
  const auto expected = texts(ample.translate(lines_));
  EXPECT_EQ(ample.work().steps, kLength) << "all at once";
  for (const auto& [bytes, batches] : {std::pair(need(16) - 1, 2), {need(8) - 1, 4}, {need(4), 4}, {need(2) - 1, 16}, {need(1), 16}}) {
    Translator t = translator(16, memory(bytes, 1, true));
    EXPECT_EQ(texts(t.translate(lines_)), expected) << bytes;
    EXPECT_EQ(t.work().steps, batches * kLength) << bytes;
  }
}

TEST_F(TranslatorMemory, WhatDoesNotFitIsRefusedWithoutComputing) {
  Translator asked_for = translator(16, memory(need(16) - 1, 1, false));
  try {
    asked_for.translate(lines_);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("a beam of 3 for 16 sentences at a time on 1 thread needs"), HasSubstr("the test's bound")));
  }
  EXPECT_EQ(asked_for.work().steps, 0);
  Translator smallest = translator(16, memory(need(1) - 1, 1, true));
  try {
    smallest.translate(lines_);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("a beam of 3 for 1 sentence at a time on 1 thread needs"));
  }
}

// Each of the ranks on a host translates its part of the validation text at the same time.
TEST_F(TranslatorMemory, RanksOfAHostShareIt) {
  const int64_t four = 4 * need(16);
  EXPECT_NO_THROW(translator(16, memory(four, 4, false)).translate(lines_));
  try {
    translator(16, memory(four, 5, false)).translate(lines_);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr(", for 5 ranks on this host; lower the beam"));
  }
  Translator fifth = translator(16, memory(four, 5, true));
  fifth.translate(lines_);
  EXPECT_EQ(fifth.work().steps, 2 * kLength);
}

// Where 8-bit products are as fast with a few rows as with many: 32 hypotheses, 16 sentences.
TEST_F(TranslatorMemory, SmallModelsOf8BitsTakeFewSentencesAtOnce) {
  quantize_all(*model_);
  const std::vector<std::string> lines(32, lines_[0]);
  Translator t(*model_, vocabularies_, search_, 64);
  t.translate(lines);
  const int64_t at_once = backend_->multiplies_int8() ? 4 : 1;  // 10, 10, 10 and 2 sentences of a beam of 3
  EXPECT_EQ(t.work().steps, at_once * kLength);
  SearchOptions greedy = search_;
  greedy.beam = 1;
  t.set_search(greedy);
  t.translate(lines);
  EXPECT_EQ(t.work().steps, (at_once + (at_once + 1) / 2) * kLength) << "twice 16 more";
}

// What a translator has taken it keeps for the next text: it must not ask for it twice.
TEST_F(TranslatorMemory, WhatItHasIsNotCountedAsTaken) {
  int64_t left = need(16);
  Translator t = translator(16, {.usable = [&] { return UsableMemory{left, ""}; }});
  t.translate(lines_);
  left = 0;
  EXPECT_NO_THROW(t.translate(lines_));
  EXPECT_THROW(t.translate(std::vector<std::string>(16, "abba baab ab aa baab")), ConfigError);
}

}  // namespace
}  // namespace starling
