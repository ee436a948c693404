// Which model a client's codes lead to.
#include "serve/directions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using Models = std::vector<Direction>;

// "en to de", "unchanged", or the refusal.
std::string route(const Models& models, const std::string& source, const std::string& target) {
  try {
    const Route r = route_between(models, source, target);
    return r.unchanged ? "unchanged" : r.direction.source + " to " + r.direction.target;
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
  EXPECT_EQ(route(models, "eng", "de"), "eng is not supported");
  EXPECT_EQ(route({{"zh-Hant", "en"}, {"zh-Hans", "en"}}, "zh-TW", "en"), "zh-Hant to en");
  EXPECT_EQ(route({{"zh-Hant", "en"}, {"zh-Hans", "en"}}, "zh", "en"), "zh-Hans to en");
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
