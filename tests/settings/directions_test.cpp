// Corpora that name their languages make a model for several directions: which tags their sentences get, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "settings/config.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTwoTargets =
    "data:\n"
    "  source-language: en\n"
    "  train:\n"
    "  - {source: a, target: b, target-language: de}\n"
    "  - {source: c, target: d, target-language: fr, source-language: de}\n"
    "  - {source: e, target: f, target-language: de, tag: '>>de<< >>formal<<'}\n";

Config parsed(const std::string& text, const std::vector<Override>& overrides = {}) { return parse_config(text, "c.yml", overrides); }
std::string refusal(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parsed(text, overrides);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Directions, SeveralTargetsAreTagged) {
  const Config c = parsed(kTwoTargets);
  EXPECT_THAT(c.languages.directions, ElementsAre("en:de", "de:fr"));
  EXPECT_EQ(c.data.train[0].tag, ">>de<<");
  EXPECT_EQ(c.data.train[1].tag, ">>fr<<");
  EXPECT_EQ(c.data.train[2].tag, ">>de<< >>formal<<");
  EXPECT_THAT(language_tags(c.languages), ElementsAre(">>de<<", ">>fr<<"));
  // A dump and a further start say the same.
  EXPECT_EQ(dump_config(parsed(dump_config(c, false)), false), dump_config(c, false));
}

TEST(Directions, OneTargetNeedsNoTag) {
  const Config many = parsed(
      "data: {train: [{source: a, target: b, source-language: de, target-language: en},"
      " {source: c, target: d, source-language: fr, target-language: en}]}");
  EXPECT_THAT(many.languages.directions, ElementsAre("de:en", "fr:en"));
  EXPECT_THAT(language_tags(many.languages), IsEmpty());
  EXPECT_EQ(many.data.train[0].tag, "");
  const Config one = parsed("data: {train: [{source: a, target: b, source-language: de, target-language: en}]}");
  EXPECT_THAT(one.languages.directions, IsEmpty());
  EXPECT_EQ(one.languages.source + one.languages.target, "deen");
  const Config half = parsed("data: {source-language: en, train: [{source: a, target: b, target-language: de}]}");
  EXPECT_EQ(half.languages.source + half.languages.target, "ende");
  EXPECT_THAT(parsed("data: {source: a, target: b, source-language: de, target-language: en}").languages.directions, IsEmpty());
}

// A translation memory holds several languages, so a corpus of one has those of the whole text; others need none.
TEST(Directions, MemoriesAreReadInTheLanguagesOfTheText) {
  const Config c = parsed("data: {tsv: a.tmx.gz, source-language: de, target-language: en}");
  EXPECT_EQ(c.data.train[0].source_language + ":" + c.data.train[0].target_language, "de:en");
  EXPECT_EQ(c.languages.source + ":" + c.languages.target, "de:en");
  EXPECT_THAT(c.languages.directions, IsEmpty());
  const Config own =
      parsed("data: {source-language: de, target-language: en, train: [{tsv: a.tmx, source-language: en, target-language: de}]}");
  EXPECT_EQ(own.data.train[0].source_language + ":" + own.data.train[0].target_language, "en:de");
  EXPECT_EQ(parsed("data: {tsv: a.tsv, source-language: de, target-language: en}").data.train[0].source_language, "");
}

// As when a model for several directions is fine-tuned on one of them.
TEST(Directions, AreKeptWhereTheyAreGiven) {
  const Config c = parsed("data: {source: a, target: b, source-language: en, target-language: fr, directions: [en:de, en:fr]}");
  EXPECT_THAT(c.languages.directions, ElementsAre("en:de", "en:fr"));
  EXPECT_EQ(c.data.train[0].tag, ">>fr<<");
}

TEST(Directions, ValidationTextsHaveTheirOwn) {
  const Config c = parsed(std::string(kTwoTargets) +
                          "valid: {sets: [{source: g, target: h, target-language: de}, {source: i, target: j, target-language: fr}]}");
  EXPECT_TRUE(c.valid.enabled());
  ASSERT_EQ(c.valid.texts().size(), 2u);
  EXPECT_EQ(c.valid.texts()[1].tag, ">>fr<<");
  EXPECT_EQ(c.valid.texts()[1].name(), "en:fr i");
  const Config single = parsed("valid: {source: a, target: b}");
  ASSERT_EQ(single.valid.texts().size(), 1u);
  EXPECT_EQ(single.valid.texts()[0].source + single.valid.texts()[0].tag, "a");
  EXPECT_THAT(refusal("valid: {source: a, target: b, sets: [{source: a, target: b}]}"),
              HasSubstr("valid.source and valid.sets are both set"));
}

TEST(Directions, WhatIsMissingIsNamed) {
  EXPECT_THAT(refusal(kTwoTargets, {{"data.source-language", ""}}), HasSubstr("data.train.0.source-language is missing; give each corpus"));
  EXPECT_THAT(refusal(kTwoTargets, {{"data.train.1.target-language", "french"}}),
              HasSubstr("data.train.1.target-language: 'french' is not"));
  EXPECT_THAT(refusal("data: {directions: [en-de]}"), HasSubstr("data.directions: 'en-de' is not a direction; write en:de"));
  EXPECT_THAT(refusal(kTwoTargets, {{"data.train.1.tag", ">>de<<"}}), HasSubstr("data.train.1.tag: '>>de<<' lacks >>fr<<"));
  EXPECT_THAT(refusal(std::string(kTwoTargets) + "valid: {source: g, target: h}"),
              HasSubstr("list the validation texts and their languages"));
}

}  // namespace
}  // namespace starling
