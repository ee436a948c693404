// Which pairs are dropped with the defaults, and which are not: short text above all.
#include <gtest/gtest.h>

#include <map>

#include "cleaning/pair_measures.h"
#include "config/words.h"
#include "tests/cleaning/table_rows.h"

namespace starling {
namespace {

RuleSet broken_rules(const JudgedSide& source, const JudgedSide& target, const PairKind& kind, const CleanOptions& options) {
  return Rules(options).broken(measured(source, target, kind, options));
}

std::string broken(const std::string& source, const std::string& target, const std::string& from = "en", const std::string& to = "de",
                   const CleanOptions& options = {}) {
  const JudgedSide s(source), t(target);
  return broken_rules(s, t, PairKind(from, to), options).text();
}

TEST(CleaningRules, EachHasItsPairs) {
  EXPECT_EQ(broken("", "Hallo"), "empty");
  EXPECT_EQ(broken("The caf\ufffd is closed today", "Das Café ist heute geschlossen"), "encoding");
  EXPECT_EQ(broken("The ÐÐ¾ÑÐºÐ²Ð° office", "Das Büro in Moskau"), "encoding");
  std::string many;
  for (int i = 0; i < 251; ++i) many += "w" + std::to_string(i) + " ";
  EXPECT_EQ(broken(many, "kurz"), "length");
  EXPECT_EQ(broken("Yes, of course.", "Ja, natürlich, und außerdem komme ich morgen mit dem Zug nach Hause."), "ratio");
  EXPECT_EQ(broken("It is aaaaabbbbbcccccdddddeeeeefffffggggghhhhhiiiii", "Es ist nicht so lang, aber auch nicht kurz genug"), "long-word");
  EXPECT_EQ(broken("12 34 56 78 90 12 34 a", "12 34 56 78 90 12 34 b"), "letters+similar");
  EXPECT_EQ(broken("Привет, как у вас дела?", "Hallo, wie geht es Ihnen?"), "script");
  EXPECT_EQ(broken("The yard is empty today.", "the yard, is empty today", "", ""), "copy");
  EXPECT_EQ(broken("THE YARD IS EMPTY", "the yard is empty.", "", ""), "copy");
  EXPECT_EQ(broken("THE YARD IS EMPTY", "THE YARD IS EMPTY", "", ""), "");
  EXPECT_EQ(broken("In 1492 he sailed to the west.", "Im Jahre 1776 segelte er."), "digits");
  EXPECT_EQ(broken("See https://a.example/x for more.", "Mehr unter https://a.example/y."), "addresses");
  EXPECT_EQ(broken("Open %s in {0}", "%s öffnen"), "placeholders");
  EXPECT_EQ(broken("A <b>bold</b> word", "Ein fettes Wort"), "markup");
  EXPECT_EQ(broken("He went home.", "Er ging und ging und ging und ging nach Hause"), "repetition");
  EXPECT_EQ(broken("The weather will be fine tomorrow in the whole country.", "Demain il fera beau dans tout le pays, sauf sur la côte."),
            "language");
}

TEST(CleaningRules, ShortAndUnusualTextStays) {
  const std::pair<const char*, const char*> kept[] = {{"OK", "OK"},
                                                      {"Yes.", "Ja."},
                                                      {"Cancel", "Abbrechen"},
                                                      {"USB", "USB"},
                                                      {"Save As...", "Speichern unter..."},
                                                      {"The Old Man", "Der alte Mann"},
                                                      {"New York City", "New York City"},
                                                      {"100 %", "100 %"},
                                                      {"12.50", "12,50"},
                                                      {"%1 of %2", "%1 von %2"},
                                                      {"Angela Merkel", "Angela Merkel"},
                                                      {"He had 2 dogs.", "Er hatte zwei Hunde."},
                                                      {"Ha ha ha!", "Ha ha ha!"},
                                                      {"YouTube", "YouTube"},
                                                      {"SPAÑA Ñ¿?", "NÃO Ã"},
                                                      {"I", "Ich"},
                                                      {"Undo", "Rückgängig machen"},
                                                      {"Donaudampfschifffahrt", "Donaudampfschifffahrt"},
                                                      {"See www.example.org.", "Siehe www.example.org."}};
  for (const auto& [source, target] : kept) EXPECT_EQ(broken(source, target), "") << source;
  EXPECT_EQ(broken("これはテストです。", "This is a test.", "ja", "en"), "");
  EXPECT_EQ(broken("١٢٣ كتاب على الطاولة", "123 books on the table", "ar", "en"), "");
  EXPECT_EQ(broken("สวัสดีครับท่านผู้มีเกียรติทุกท่าน", "Good day, ladies and gentlemen who are here", "th", "en"), "");
}

TEST(CleaningRules, RatiosAreMeasuredByWhatIsUsual) {
  PairKind kind("zh", "en");
  const std::string source = "我们明天早上去北京开会。", target = "We are going to Beijing tomorrow morning for a meeting.";
  EXPECT_FALSE(broken_rules(JudgedSide(source), JudgedSide(target), kind, {}).any());  // it is not known
  kind.usual_ratio = 1;
  EXPECT_TRUE(broken_rules(JudgedSide(source), JudgedSide(target), kind, {}).has(Rule::ratio));
  kind.usual_ratio = 3.5;
  EXPECT_FALSE(broken_rules(JudgedSide(source), JudgedSide(target), kind, {}).any());
}

// What takes long with most texts takes a moment here too.
TEST(CleaningRules, LookAtAnyTextInAMoment) {
  CleanOptions all;
  all.max_words = all.max_characters = 0;
  std::string digits, loop, letters;
  for (uint32_t i = 0, x = 1; i < 3000; ++i, x = x * 1103515245 + 12345) {
    digits += static_cast<char>('1' + (x >> 16) % 9);
    loop += "ab";
    letters += static_cast<char>('a' + (x >> 16) % 2);
  }
  for (const std::string& text : {digits, loop, letters}) {
    const std::string other(text.rbegin(), text.rend());
    const PairMeasures pair = measured(JudgedSide(text), JudgedSide(other), PairKind("en", "de"), all);
    EXPECT_GE(pair[Measure::characters], 3000);
    EXPECT_EQ(pair[Measure::repeated] == kMostRepetitions, text == loop) << text.substr(0, 20);
  }
}

// Names and codes that both sides have are in no language and no script; short text is often taken for another language.
TEST(CleaningRules, WordsOfBothSidesAreInNoLanguage) {
  EXPECT_EQ(broken("PL/pgSQL function %s", "PL/pgSQL関数 %s", "en", "ja"), "");
  EXPECT_EQ(broken("Hewlett-Packard Omnibook XE3 GC", "惠普 Omnibook XE3 GC", "en", "zh-CN"), "");
  EXPECT_EQ(broken("James Youngman", "James Youngman", "en", "ru"), "");
  EXPECT_EQ(broken("Microsoft Natural Ergonomic 4000", "Microsoft Natural Ergonomic 4000", "en", "fr"), "");
  EXPECT_EQ(broken("invalid relocation expression", "expression de réadressage invalide", "en", "fr"), "");
  EXPECT_EQ(broken("use <branch>", "использовать <ветка>", "en", "ru"), "");
  EXPECT_EQ(broken("See page %s of file %s, column %d, byte %d", "Siehe %4$d, %3$d, %2$s, %1$s auf dieser Seite"), "");
  EXPECT_EQ(broken("The bus departs for Munich at 3:05 pm.", "Der Bus fährt um 15:05 Uhr nach München ab."), "");
  EXPECT_EQ(broken("The bus departs for Munich at 3:05.", "Der Bus fährt um 15:45 Uhr nach München ab."), "digits");
  EXPECT_EQ(broken("The Old Bridge", "The Young River", "en", "ru"), "script");
  EXPECT_EQ(broken("Der Hund schläft unter dem Tisch.", "The dog sleeps under the table.", "en", "de"), "language");
  EXPECT_EQ(broken("The dog sleeps", "Ñ обака ÑЃпит", "en", "ru"), "encoding");
}

TEST(CleaningRules, TakeMessagesAsTheyAre) {
  EXPECT_EQ(broken("Cannot open `%s': %s", "„%s“ kann nicht geöffnet werden: %s"), "");
  EXPECT_EQ(broken("Cannot open `%s'", "„%d“ kann nicht geöffnet werden"), "placeholders");
}

TEST(CleaningRules, CanBeTurnedOff) {
  CleanOptions off;
  off.encoding = off.copy = off.addresses = off.placeholders = off.markup = off.language = false;
  off.max_words = off.max_characters = off.max_word = off.max_repetitions = 0;
  off.max_ratio = off.min_letters = off.min_script = off.max_similarity = off.min_digits = 0;
  for (const std::vector<std::string>& fields : table_rows("cleaning/pairs.tsv")) {
    const std::string why = broken(fields.at(4), fields.at(5), "en", "de", off);
    EXPECT_TRUE(why.empty() || why == "empty") << fields[0];
  }
}

// Of the fixture's pairs, by their kinds: all clean ones stay, and of what was spoiled on purpose most goes.
TEST(CleaningRules, OfTheFixtureTheCleanPairsStay) {
  std::map<std::string, std::string> by_kind;  // the rules that each kind breaks
  int clean = 0;
  for (const std::vector<std::string>& fields : table_rows("cleaning/pairs.tsv")) {
    if (fields.at(0) == "id") continue;
    const std::string why = broken(fields.at(4), fields.at(5), fields[1], fields[2]);
    if (fields[3] == "clean") {
      ++clean;
      EXPECT_EQ(why, "") << fields[0];
    }
    by_kind[fields[3]] += why + " ";
  }
  EXPECT_EQ(clean, 29);
  for (const auto& [kind, rule] : {std::pair{"copy", "copy"},
                                   {"wrong-language", "language"},
                                   {"script", "script"},
                                   {"number-mismatch", "digits"},
                                   {"ratio", "ratio"},
                                   {"empty", "empty"},

                                   {"replacement", "encoding"}})
    EXPECT_NE(by_kind[kind].find(rule), std::string::npos) << kind << ": " << by_kind[kind];
}

TEST(CleaningRules, CopiesAreEqualButForCaseSpacesAndMarks) {
  EXPECT_EQ(JudgedSide("The yard, is EMPTY!").copy_key, JudgedSide("the yard  is empty").copy_key);
  EXPECT_NE(JudgedSide("Room 12").copy_key, JudgedSide("Room 13").copy_key);
  EXPECT_EQ(JudgedSide("...").copy_key, "...");
}

}  // namespace
}  // namespace starling
