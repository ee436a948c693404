// Repairs of text: what is damaged is mended, what is not stays byte for byte.
#include "cleaning/repair.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/cleaning/table_rows.h"

namespace starling {
namespace {

std::string repaired(std::string_view text) {
  RepairCounts counts{};
  return starling::repaired(text, counts);
}

// The first repair that changed it; kRepairs if none did.
size_t repair_of(std::string_view text) {
  RepairCounts counts{};
  starling::repaired(text, counts);
  for (size_t i = 0; i < kRepairs; ++i)
    if (counts[i] > 0) return i;
  return kRepairs;
}

TEST(RepairText, EncodingsThatWereMistaken) {
  EXPECT_EQ(repaired("The cafÃ© is closed"), "The café is closed");
  EXPECT_EQ(repaired("MÃ¼nchen, â€œKÃ¶lnâ€\u009d"), "München, “Köln”");
  EXPECT_EQ(repaired("itâ€™s 5Â°C"), "it’s 5°C");
  EXPECT_EQ(repaired("FÃ¼nf, grÃ¼n, Ã¼ber"), "Fünf, grün, über");
  EXPECT_EQ(repaired("cafÃƒÂ©"), "café");  // twice
  EXPECT_EQ(repaired("ÐœÐ¾Ñ\u0081ÐºÐ²Ð° Ð¸ Ð¼Ñ‹"), "Москва и мы");
  EXPECT_EQ(repaired("ðŸ˜€ ok"), "😀 ok");
  EXPECT_EQ(repaired("cafÃ\u00a0 Ã\u00a0 la carte"), "cafà à la carte");
  EXPECT_EQ(repair_of("cafÃ©"), static_cast<size_t>(Repair::encoding));
}

TEST(RepairText, WhatHasItsMarksFromItsAuthorStays) {
  for (const char* clean : {"«CAFÉ» et «À L'ÉTÉ»…",
                            "TERMINÉ…",
                            "NÃO",
                            "AMANHÃ”",
                            "IRMÃ – MAÇÃ…",
                            "»ÜBER« 20 °C",
                            "Nestlé® und Citroën™",
                            "Å·Ä·Ö",
                            "Île d’Yeu",
                            "20 m² à 3 €",
                            "fermé»…",
                            "L·L i l·l",
                            "α² + β",
                            "tiếng Việt",
                            "naïve façade",
                            "Ærø",
                            "50 ¢ ½ ¾",
                            "LIBERTÉ\u00a0! ÉGALITÉ\u00a0! FRATERNITÉ\u00a0!",
                            "A IRMÃ\u00a0Maria chegou",
                            "VÝŠE UVEDENÉ I NÍŽE UVEDENÉ",
                            "3×½ AND 2×¼"})
    EXPECT_EQ(repaired(clean), clean);
}

TEST(RepairText, Entities) {
  EXPECT_EQ(repaired("Tom &amp; Jerry&#39;s &lt;b&gt;"), "Tom & Jerry's <b>");
  EXPECT_EQ(repaired("Fish &amp;amp; chips"), "Fish & chips");
  EXPECT_EQ(repaired("R&D; AT&T &unknown; a&b"), "R&D; AT&T &unknown; a&b");
}

TEST(RepairText, Spaces) {
  EXPECT_EQ(repaired("  two  spaces\there \r"), "two spaces here");
  EXPECT_EQ(repaired("\ufeffsoft\u00adhyphen and zero\u200bwidth\x07"), "softhyphen and zerowidth");
  EXPECT_EQ(repaired("50\u00a0% et\u202f: 全角\u3000空白"), "50\u00a0% et\u202f: 全角\u3000空白");
  EXPECT_EQ(repaired("می\u200cخواهم क्\u200dष \u200fא\u200e"), "می\u200cخواهم क्\u200dष \u200fא\u200e");
  EXPECT_EQ(repaired("line\u2028separator"), "line separator");
  EXPECT_EQ(repaired(" \t\u00a0"), "");
  EXPECT_EQ(repaired(""), "");
}

TEST(RepairText, MarksAndLettersOfOtherAlphabets) {
  EXPECT_EQ(repaired("cafe\u0301"), "café");
  EXPECT_EQ(repaired("The pаssword"), "The password");
  EXPECT_EQ(repaired("Mосква"), "Москва");
  EXPECT_EQ(repaired("Αθήνα, Αthens"), "Αθήνα, Athens");
  for (const char* clean : {"μ-law и API-ключ", "хD", "αβ-Test", "Тест USB", "SQL-запрос", "これはtestです"})
    EXPECT_EQ(repaired(clean), clean);
}

// Of the fixture's pairs only those change that were made to be damaged.
TEST(RepairText, LeavesCleanPairsAlone) {
  std::set<std::string> kinds;
  int clean = 0;
  for (const std::vector<std::string>& fields : table_rows("cleaning/pairs.tsv")) {
    if (fields.at(0) == "id") continue;
    clean += fields.at(3) == "clean";
    for (size_t side = 4; side < 6; ++side)
      if (repaired(fields.at(side)) != fields[side]) kinds.insert(fields[3]);
  }
  EXPECT_EQ(clean, 29);
  const std::set<std::string> damaged = {"mojibake", "entity", "space", "control", "invisible", "combining",    "script-mixed",
                                         "blank",    "spaced", "wiki",  "empty",   "html",      "unicode-noise"};
  for (const std::string& kind : kinds) EXPECT_TRUE(damaged.contains(kind)) << kind;
  for (const char* kind : {"mojibake", "entity", "space", "invisible", "combining", "script-mixed"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

}  // namespace
}  // namespace starling
