// What counts as clearly in another language. docs/guides/documents.md has the shares of real texts.
#include "text/detect_language.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

bool is_other(const char* text, std::vector<std::string> languages, const char* other = "") {
  return is_clearly_in_another_language(text, languages, other);
}

TEST(DetectLanguage, ClearlyAnotherLanguage) {
  const char* const german = "Eine Frau steht vor einem Haus und wartet.";
  EXPECT_TRUE(is_other(german, {"en"}, "de"));
  EXPECT_TRUE(is_other(german, {"en-GB", "fr"}));
  EXPECT_FALSE(is_other(german, {"de-AT"}, "en"));
  EXPECT_FALSE(is_other(german, {"en", "de"}, "fr"));
  EXPECT_FALSE(is_other("A woman is standing in front of a house.", {"en"}, "de"));
  EXPECT_TRUE(is_other("Не удалось открыть файл", {"en"}, "de"));
  EXPECT_TRUE(is_other("設定を開く", {"en"}));
  EXPECT_FALSE(is_other("設定を開く", {"ja"}, "en"));
}

TEST(DetectLanguage, TheLikeliest) {
  EXPECT_EQ(likely_language("Das Wetter wird morgen im ganzen Land schön."), "de");
  EXPECT_EQ(likely_language("Demain il fera beau dans tout le pays."), "fr");
  EXPECT_EQ(likely_language("Завтра будет хорошая погода."), "ru");
  EXPECT_EQ(likely_language("12 345 %"), "");
}

TEST(DetectLanguage, ShortLatinTextIsNeverClear) {
  for (const char* text : {"", "Video", "Timer", "Split pane", "Eine Frau wartet", "12:30", "Berlin, Hamburg"})
    EXPECT_FALSE(is_other(text, {"en"}, "de")) << text;
}

}  // namespace
}  // namespace starling
