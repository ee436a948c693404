// Codes as clients send them, and which language of a model they mean.
#include "text/language_match.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

TEST(LanguageMatch, ComparesCodesInOneSpelling) {
  EXPECT_EQ(comparable_language("pt_BR"), "pt-br");
  EXPECT_EQ(comparable_language("EN"), "en");
  EXPECT_EQ(comparable_language("pb"), "pt-br");  // LibreTranslate's
  EXPECT_EQ(comparable_language("ZT"), "zh-hant");
  EXPECT_EQ(comparable_language("iw-IL"), "he-il");
  EXPECT_EQ(comparable_language("inh"), "inh");  // Ingush, not Indonesian
  EXPECT_EQ(comparable_language("nb_NO"), "no-no");
  EXPECT_EQ(comparable_language("por"), "pt");  // ISO 639-3, and its members of macrolanguages
  EXPECT_EQ(comparable_language("cmn_Hant"), "zh-hant");
  EXPECT_EQ(comparable_language("nob"), "no");
  EXPECT_EQ(comparable_language("pob"), "pt-br");  // OPUS-MT's
  EXPECT_EQ(comparable_language("ast"), "ast");    // has no code of two letters
  EXPECT_EQ(comparable_language(""), "");
}

// The scripts that ICU 72 adds to these codes (uloc_addLikelySubtags).
TEST(LanguageMatch, KnowsScriptsAsCldrDoes) {
  const std::pair<const char*, const char*> scripts[] = {
      {"zh", "Hans"},    {"zh-CN", "Hans"}, {"zh-SG", "Hans"}, {"zh-MY", "Hans"}, {"zh-TW", "Hant"},      {"zh_HK", "Hant"},
      {"zh-MO", "Hant"}, {"yue", "Hant"},   {"sr", "Cyrl"},    {"sr-RS", "Cyrl"}, {"sr-BA", "Cyrl"},      {"sr-ME", "Latn"},
      {"uz", "Latn"},    {"uz-AF", "Arab"}, {"kk", "Cyrl"},    {"kk-CN", "Arab"}, {"mn-CN", "Mong"},      {"pa", "Guru"},
      {"pa-PK", "Arab"}, {"az-IR", "Arab"}, {"ky-TR", "Latn"}, {"bs", "Latn"},    {"zh-Hant-CN", "Hant"}, {"zh-hans-TW", "Hans"}};
  for (const auto& [code, script] : scripts) EXPECT_EQ(language_script(code), script) << code;
  EXPECT_EQ(language_script("sr-Latn"), "Latn");
  EXPECT_EQ(language_script("zt"), "Hant");
  EXPECT_EQ(language_script("de"), "");  // one script only
  EXPECT_EQ(language_script("en-x-hant"), "");
}

TEST(LanguageMatch, NearerIsTheSameThenWhatSaysLessThenTheSameLanguage) {
  EXPECT_EQ(language_distance("pt-br", "pt-BR"), 0);
  EXPECT_EQ(language_distance("pt_BR", "pt-BR"), 1);
  EXPECT_EQ(language_distance("pb", "pt-BR"), 1);
  EXPECT_EQ(language_distance("nb", "no"), 1);
  EXPECT_EQ(language_distance("en-US", "en"), 2);
  EXPECT_EQ(language_distance("zh-Hant-TW", "zh-Hant"), 2);
  EXPECT_EQ(language_distance("de-DE-1996", "de"), 3);
  EXPECT_EQ(language_distance("pt", "pt-BR"), kSameLanguageOnly);
  EXPECT_EQ(language_distance("pt-PT", "pt-BR"), kSameLanguageOnly);
  EXPECT_EQ(language_distance("zh-Hans", "zh"), 2);
  EXPECT_EQ(language_distance("zh", "zh-Hans"), kSameLanguageOnly);
  EXPECT_EQ(language_distance("zh-CN", "zh-Hans"), kSameLanguageOnly);
  EXPECT_EQ(language_distance("zh-TW", "zh-Hant"), kSameLanguageOnly);
  EXPECT_EQ(language_distance("sr-Latn", "sr-ME"), kSameLanguageOnly);
  for (const auto& [asked, has] : {std::pair("zh-Hant", "zh"),
                                   {"zh-TW", "zh"},
                                   {"zh-TW", "zh-Hans"},
                                   {"zh", "zh-Hant"},
                                   {"sr-Latn", "sr"},
                                   {"en", "de"},
                                   {"inh", "id"},
                                   {"e", "en"},
                                   {"", "en"}})
    EXPECT_FALSE(language_distance(asked, has)) << asked << " " << has;
}

}  // namespace
}  // namespace starling
