// Which model a client's codes lead to.
#include "serve/directions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using Models = std::vector<Direction>;

// "en to de", "unchanged", or the refusal.
std::string route(const Models& models, const std::string& source, const std::string& target, const std::vector<std::string>& pivots = {}) {
  try {
    const Route r = route_between(models, source, target, pivots);
    std::string text = r.unchanged() ? "unchanged" : "";
    for (const Direction& leg : r.legs) text += (text.empty() ? "" : ", ") + leg.source + " to " + leg.target;
    return text;
  } catch (const ApiError& e) {
    EXPECT_EQ(e.status, 400);
    return e.what();
  }
}

TEST(Directions, CodesLeadToTheNearestModel) {
  const Models models{{"zh", "de"}, {"pt-BR", "de"}, {"en", "de"}};
  EXPECT_EQ(route(models, "zh-Hans", "de"), "zh to de");
  EXPECT_EQ(route(models, "zh_CN", "de"), "zh to de");
  EXPECT_EQ(route(models, "zh-Hant", "de"), "zh-Hant is not supported");
  EXPECT_EQ(route(models, "zt", "de"), "zt is not supported");
  EXPECT_EQ(route(models, "pt", "de"), "pt-BR to de");
  EXPECT_EQ(route(models, "pb", "DE"), "pt-BR to de");
  EXPECT_EQ(route(models, "en-US", "de-DE"), "en to de");
  EXPECT_EQ(route(models, "EN_us", "de_AT"), "en to de");
  EXPECT_EQ(route(models, "eng", "de"), "en to de");  // ISO 639-3
  EXPECT_EQ(route(models, "enm", "de"), "enm is not supported");
  EXPECT_EQ(route({{"zh-Hant", "en"}, {"zh-Hans", "en"}}, "zh-TW", "en"), "zh-Hant to en");
  EXPECT_EQ(route({{"zh-Hant", "en"}, {"zh-Hans", "en"}}, "zh", "en"), "zh-Hans to en");
}

// As packages of Argos and clients of LibreTranslate spell them.
TEST(Directions, LibreTranslatesCodesAreKnown) {
  const Models argos{{"zh", "en"}, {"zt", "en"}, {"pb", "en"}, {"en", "zh"}, {"en", "zt"}, {"en", "pb"}};
  for (const char* code : {"zh", "zh-Hans", "zh-CN", "zh_hans", "ZH-Hans-CN"}) EXPECT_EQ(route(argos, code, "en"), "zh to en") << code;
  for (const char* code : {"zt", "zh-Hant", "zh-TW", "zh_hk"}) EXPECT_EQ(route(argos, "en", code), "en to zt") << code;
  for (const char* code : {"pb", "pt-BR", "pt_br", "pt"}) EXPECT_EQ(route(argos, code, "en"), "pb to en") << code;
  const Models named{{"zh-Hans", "en"}, {"zh-Hant", "en"}, {"pt-BR", "en"}, {"pt", "en"}};
  EXPECT_EQ(route(named, "zh", "en"), "zh-Hans to en");
  EXPECT_EQ(route(named, "zt", "en"), "zh-Hant to en");
  EXPECT_EQ(route(named, "pb", "en"), "pt-BR to en");
  EXPECT_EQ(route(named, "pt", "en"), "pt to en");
  EXPECT_EQ(route({{"pt", "en"}}, "pb", "en"), "pt to en");
  EXPECT_EQ(route({{"pb", "en"}}, "pt", "en"), "pb to en");
  EXPECT_EQ(route({{"en", "pb"}}, "en", "pt"), "en to pb");
  EXPECT_EQ(language_name("zt"), "Chinese (traditional)");
  EXPECT_EQ(language_name("pb"), "Portuguese (Brazil)");
}

TEST(Directions, APivotLeadsWhereNoModelDoes) {
  const Models models{{"de", "en"}, {"en", "fr"}, {"en", "it"}, {"it", "fr"}, {"de", "it"}, {"en", "pt-BR"}};
  const std::vector<std::string> english{"en"}, both{"it", "en"};
  EXPECT_EQ(route(models, "de", "fr", english), "de to en, en to fr");
  EXPECT_EQ(route(models, "de", "it", english), "de to it");  // directly
  EXPECT_EQ(route(models, "de", "fr", both), "de to it, it to fr");
  EXPECT_EQ(route(models, "de", "pb", both), "de to en, en to pt-BR");  // none through Italian
  EXPECT_EQ(route(models, "de-AT", "fr-CA", {"en-US"}), "de to en, en to fr");
  EXPECT_EQ(route(models, "de", "fr"), "French (fr) is not available as a target language from German (de)");
  EXPECT_EQ(route(models, "fr", "de", english), "German (de) is not available as a target language from French (fr)");
  EXPECT_EQ(route(models, "de", "de", english), "unchanged");
  EXPECT_EQ(route(models, "de", "zz", english), "zz is not supported");
  // Regional models may meet as well, the nearest ones first.
  const Models regional{{"de", "en-US"}, {"de", "en-GB"}, {"en-GB", "fr"}, {"pt-BR", "en"}, {"en", "pt-BR"}};
  EXPECT_EQ(route(regional, "de", "fr", english), "de to en-GB, en-GB to fr");
  EXPECT_THAT(route(regional, "pt-BR", "pt-PT", english), testing::HasSubstr("is not available"));  // and back again is no translation
  EXPECT_EQ(route({{"de", "en"}, {"en", "fr-CA"}, {"en", "fr-FR"}}, "de", "fr", english),
            "there are several models from de to fr; send de to en, en to fr-CA or de to en, en to fr-FR");
}

TEST(Directions, WhatPivotsReachIsListedBehindTheModels) {
  const auto listed = [](const Models& models, const std::vector<std::string>& pivots) {
    std::string all;
    for (const Direction& d : reachable(models, pivots)) all += d.source + "-" + d.target + " ";
    return all;
  };
  const Models models{{"de", "en"}, {"en", "de"}, {"en", "fr"}, {"es", "en"}, {"es", "fr"}};
  EXPECT_EQ(listed(models, {}), "de-en en-de en-fr es-en es-fr ");
  EXPECT_EQ(listed(models, {"en"}), "de-en en-de en-fr es-en es-fr de-fr es-de ");
  EXPECT_EQ(listed(models, {"en", "EN-us"}), "de-en en-de en-fr es-en es-fr de-fr es-de ");
  EXPECT_EQ(listed(models, {"fr"}), "de-en en-de en-fr es-en es-fr ");
  for (const Direction& d : reachable(models, std::vector<std::string>{"en"}))
    EXPECT_FALSE(route_between(models, d.source, d.target, std::vector<std::string>{"en"}).unchanged());
}

TEST(Directions, TheExactCodeGoesBeforeOthers) {
  const Models models{{"pt-BR", "de"}, {"pt", "de"}, {"pt-PT", "de"}};
  EXPECT_EQ(route(models, "pt", "de"), "pt to de");
  EXPECT_EQ(route(models, "pt-PT", "de"), "pt-PT to de");
  EXPECT_EQ(route(models, "pt_BR", "de"), "pt-BR to de");
  EXPECT_EQ(route(models, "pt-AO", "de"), "pt to de");
}

TEST(Directions, OneOfSeveralIsNeverGuessed) {
  const Models models{{"pt-BR", "de"}, {"pt-PT", "de"}, {"pt-PT", "en"}};
  EXPECT_EQ(route(models, "pt", "de"), "there are several models from pt to de; send pt-BR to de or pt-PT to de");
  EXPECT_EQ(route(models, "pt", "en"), "pt-PT to en");  // only one has both languages
  EXPECT_THROW(nearest_language(languages_of(models), "pt"), ApiError);
  try {
    nearest_language(languages_of(models), "pt");
  } catch (const ApiError& e) {
    EXPECT_STREQ(e.what(), "pt is not supported; send pt-BR or pt-PT");
  }
}

TEST(Directions, TheSameLanguageNeedsNoModel) {
  const Models models{{"de", "en"}, {"pt-BR", "en"}};
  EXPECT_EQ(route(models, "en", "en"), "unchanged");
  EXPECT_EQ(route(models, "de", "DE"), "unchanged");
  EXPECT_EQ(route(models, "en-US", "en-GB"), "unchanged");
  EXPECT_EQ(route(models, "pt", "pt"), "unchanged");
  EXPECT_EQ(route(models, "pt-BR", "pt-PT"), "Portuguese (pt-PT) is not available as a target language from Portuguese (Brazil) (pt-BR)");
  EXPECT_EQ(route(models, "fr", "fr"), "fr is not supported");
  EXPECT_EQ(route(models, "en", "de"), "German (de) is not available as a target language from English (en)");
  // But a model that is made for it does its work.
  EXPECT_EQ(route({{"en", "en"}, {"de", "en"}}, "en", "en"), "en to en");
  EXPECT_EQ(route({{"en", "en-GB"}}, "en", "en-GB"), "en to en-GB");
}

}  // namespace
}  // namespace starling
