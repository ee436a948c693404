// The demo corpus: hand-written gold pairs for each phenomenon of German that the grammar claims, and the properties that make the
// corpus a fair demonstration (pure, unambiguous, no test sentence in train).
#include "demo/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "demo/grammar.h"
#include "demo/words.h"

namespace starling {
namespace {

using namespace demo;

constexpr int64_t kSamples = 200'000;

// ---- Gold pairs from the grammar ----

Phrase np(std::string_view determiner, std::string_view noun, std::string_view adjective = "") {
  NounOptions o{determiner};
  if (!adjective.empty()) o.adjective = &find_adjective(adjective);
  return noun_phrase(find_noun(noun), o);
}
Phrase many(std::string_view determiner, std::string_view noun, std::string_view adjective = "") {
  NounOptions o{determiner};
  o.plural = true;
  if (!adjective.empty()) o.adjective = &find_adjective(adjective);
  return noun_phrase(find_noun(noun), o);
}
Clause clause(Phrase subject, std::string_view verb, Tense tense = Tense::present) {
  Clause c;
  c.subject = std::move(subject);
  c.verb = &find_verb(verb);
  c.tense = tense;
  return c;
}
Clause modal(Phrase subject, std::string_view modal_verb, std::string_view verb) {
  Clause c = clause(std::move(subject), verb, Tense::modal);
  c.modal = &find_modal(modal_verb);
  return c;
}
Clause with(Clause c, Phrase accusative) {
  c.accusative = std::move(accusative);
  return c;
}
Clause to(Clause c, Phrase dative) {
  c.dative = std::move(dative);
  return c;
}
Clause at(Clause c, Pair place) {
  c.place = std::move(place);
  return c;
}
Clause when(Clause c, Pair time, bool first = false) {
  c.time = std::move(time);
  c.time_first = first;
  return c;
}
Clause negated(Clause c) {
  c.negated = true;
  return c;
}
Clause often(Clause c) {
  c.frequency = {"often", "oft"};
  return c;
}
Clause predicate(Clause c, Pair complement) {
  c.complement = std::move(complement);
  return c;
}

std::string show(const Pair& p) { return finish(p.en + ".") + " | " + finish(p.de + "."); }
std::string show(const Clause& c) { return show(Pair{english(c), german(c)}); }
std::string question(const Clause& c) { return finish(english(c, true) + "?") + " | " + finish(german(c, Order::verb_first) + "?"); }
std::string subordinate(std::string_view conjunction, std::string_view konjunktion, const Clause& main, const Clause& c) {
  return show(Pair{english(main) + " " + std::string(conjunction) + " " + english(c),
                   german(main) + ", " + std::string(konjunktion) + " " + german(c, Order::verb_last)});
}

TEST(DemoGrammar, Tenses) {
  const Phrase brother = np("my", "brother");
  EXPECT_EQ(show(with(clause(brother, "buy"), np("a", "car", "new"))), "My brother buys a new car. | Mein Bruder kauft ein neues Auto.");
  EXPECT_EQ(show(when(with(clause(pronoun("I"), "read", Tense::progressive), np("a", "book")), {"now", "jetzt"})),
            "I am reading a book now. | Ich lese jetzt ein Buch.");
  EXPECT_EQ(show(when(with(clause(brother, "buy", Tense::past), np("the", "house", "old")), {"last year", "letztes Jahr"})),
            "My brother bought the old house last year. | Mein Bruder hat das alte Haus letztes Jahr gekauft.");
  EXPECT_EQ(show(when(clause(pronoun("we"), "get up", Tense::past), {"at half past six", "um halb sieben"})),
            "We got up at half past six. | Wir sind um halb sieben aufgestanden.");
  EXPECT_EQ(show(when(with(clause(pronoun("she"), "sell", Tense::future), many("her", "picture")), {"tomorrow", "morgen"})),
            "She will sell her pictures tomorrow. | Sie wird ihre Bilder morgen verkaufen.");
}

TEST(DemoGrammar, SeparableVerbs) {
  const Clause call = with(clause(np("my", "sister"), "call"), np("her", "friend"));
  EXPECT_EQ(show(call), "My sister calls her friend. | Meine Schwester ruft ihren Freund an.");
  EXPECT_EQ(show(when(with(clause(np("my", "sister"), "call", Tense::past), np("her", "friend")), {"yesterday", "gestern"})),
            "My sister called her friend yesterday. | Meine Schwester hat ihren Freund gestern angerufen.");
  EXPECT_EQ(show(with(modal(pronoun("he"), "want to", "call"), np("the", "doctor"))),
            "He wants to call the doctor. | Er will den Arzt anrufen.");
  EXPECT_EQ(subordinate("because", "weil", clause(pronoun("I"), "wait"), call),
            "I wait because my sister calls her friend. | Ich warte, weil meine Schwester ihren Freund anruft.");
  EXPECT_EQ(show(with(clause(pronoun("I"), "pick"), pronoun("him"))), "I pick him up. | Ich hole ihn ab.");
  EXPECT_EQ(show(with(clause(pronoun("I"), "pick"), np("the", "guest"))), "I pick up the guest. | Ich hole den Gast ab.");
  EXPECT_EQ(show(negated(when(clause(pronoun("they"), "go shopping"), {"every day", "jeden Tag"}))),
            "They do not go shopping every day. | Sie kaufen jeden Tag nicht ein.");
}

TEST(DemoGrammar, Timetable) {
  const Pair ten{"at ten o'clock", "um zehn Uhr"};
  EXPECT_EQ(show(when(clause(np("the", "train"), "depart"), ten)), "The train departs at ten o'clock. | Der Zug fährt um zehn Uhr ab.");
  EXPECT_EQ(show(when(clause(np("the", "ship"), "arrive", Tense::future), ten, true)),
            "At ten o'clock the ship will arrive. | Um zehn Uhr wird das Schiff ankommen.");
  EXPECT_EQ(show(when(clause(np("our", "exam"), "take place"), {"on Monday", "am Montag"})),
            "Our exam takes place on Monday. | Unsere Prüfung findet am Montag statt.");
}

TEST(DemoGrammar, ModalVerbs) {
  EXPECT_EQ(show(with(modal(pronoun("I"), "have to", "repair"), np("the", "bicycle"))),
            "I have to repair the bicycle. | Ich muss das Fahrrad reparieren.");
  EXPECT_EQ(show(negated(with(modal(pronoun("she"), "can", "find"), np("her", "key")))),
            "She cannot find her key. | Sie kann ihren Schlüssel nicht finden.");
  EXPECT_EQ(question(modal(np("your", "son"), "may", "go out")), "May your son go out? | Darf Ihr Sohn ausgehen?");
  EXPECT_EQ(question(with(modal(pronoun("you"), "would like to", "eat"), np("a", "apple"))),
            "Would you like to eat an apple? | Möchten Sie einen Apfel essen?");
  EXPECT_EQ(question(modal(np("the", "teacher"), "have to", "work")), "Does the teacher have to work? | Muss der Lehrer arbeiten?");
}

TEST(DemoGrammar, CasesAndGenders) {
  const auto buys = [](Phrase object) { return show(with(clause(name({"Anna", "Anna"}), "buy"), std::move(object))); };
  EXPECT_EQ(buys(np("the", "table", "old")), "Anna buys the old table. | Anna kauft den alten Tisch.");
  EXPECT_EQ(buys(np("a", "table", "old")), "Anna buys an old table. | Anna kauft einen alten Tisch.");
  EXPECT_EQ(buys(np("a", "lamp", "expensive")), "Anna buys an expensive lamp. | Anna kauft eine teure Lampe.");
  EXPECT_EQ(buys(np("a", "dress", "red")), "Anna buys a red dress. | Anna kauft ein rotes Kleid.");
  EXPECT_EQ(buys(many("bare", "shirt", "new")), "Anna buys new shirts. | Anna kauft neue Hemden.");
  EXPECT_EQ(buys(many("these", "chair", "beautiful")), "Anna buys these beautiful chairs. | Anna kauft diese schönen Stühle.");
  const auto helps = [](Phrase person) { return show(to(clause(pronoun("we"), "help"), std::move(person))); };
  EXPECT_EQ(helps(np("the", "woman", "old")), "We help the old woman. | Wir helfen der alten Frau.");
  EXPECT_EQ(helps(np("our", "child")), "We help our child. | Wir helfen unserem Kind.");
  EXPECT_EQ(helps(np("a", "customer", "polite")), "We help a polite customer. | Wir helfen einem höflichen Kunden.");
  EXPECT_EQ(helps(many("the", "child")), "We help the children. | Wir helfen den Kindern.");
  EXPECT_EQ(helps(pronoun("them")), "We help them. | Wir helfen ihnen.");
  EXPECT_EQ(helps(pronoun("you")), "We help you. | Wir helfen Ihnen.");
  EXPECT_EQ(show(with(to(clause(np("every", "student"), "give"), np("the", "teacher")), np("a", "letter"))),
            "Every student gives the teacher a letter. | Jeder Student gibt dem Lehrer einen Brief.");
  EXPECT_EQ(
      show(when(with(to(clause(pronoun("I"), "show", Tense::future), np("my", "mother")), np("the", "photo")), {"tomorrow", "morgen"})),
      "I will show my mother the photo tomorrow. | Ich werde meiner Mutter morgen das Foto zeigen.");
}

TEST(DemoGrammar, Negation) {
  EXPECT_EQ(show(negated(with(clause(pronoun("he"), "have"), np("a", "car")))), "He does not have a car. | Er hat kein Auto.");
  EXPECT_EQ(show(negated(with(clause(pronoun("we"), "need"), many("bare", "tomato", "fresh")))),
            "We do not need fresh tomatoes. | Wir brauchen keine frischen Tomaten.");
  EXPECT_EQ(show(negated(with(clause(pronoun("I"), "buy", Tense::future), np("the", "bag")))),
            "I will not buy the bag. | Ich werde die Tasche nicht kaufen.");
  EXPECT_EQ(show(negated(with(clause(pronoun("I"), "eat"), substance("butter", "Butter", Gender::feminine)))),
            "I do not eat butter. | Ich esse keine Butter.");
  EXPECT_EQ(show(negated(predicate(clause(np("the", "soup"), "be"), {"very hot", "sehr heiß"}))),
            "The soup is not very hot. | Die Suppe ist nicht sehr heiß.");
  EXPECT_EQ(show(negated(at(clause(np("my", "uncle"), "go"), {"to the station", "zum Bahnhof"}))),
            "My uncle does not go to the station. | Mein Onkel geht nicht zum Bahnhof.");
}

TEST(DemoGrammar, WordOrder) {
  EXPECT_EQ(show(when(at(clause(np("my", "father"), "drive", Tense::future), {"to Munich", "nach München"}), {"tomorrow", "morgen"}, true)),
            "Tomorrow my father will drive to Munich. | Morgen wird mein Vater nach München fahren.");
  EXPECT_EQ(show(often(with(clause(pronoun("she"), "visit"), np("her", "aunt")))),
            "She often visits her aunt. | Sie besucht ihre Tante oft.");
  EXPECT_EQ(question(with(clause(np("your", "sister"), "invite"), np("the", "neighbour"))),
            "Does your sister invite the neighbour? | Lädt Ihre Schwester den Nachbarn ein?");
  EXPECT_EQ(question(at(clause(pronoun("they"), "come", Tense::past), {"to the park", "in den Park"})),
            "Did they come to the park? | Sind sie in den Park gekommen?");
  EXPECT_EQ(subordinate("although", "obwohl", clause(pronoun("he"), "work", Tense::progressive),
                        predicate(clause(pronoun("he"), "be"), {"ill", "krank"})),
            "He is working although he is ill. | Er arbeitet, obwohl er krank ist.");
  EXPECT_EQ(subordinate("that", "dass", clause(pronoun("I"), "know"),
                        with(clause(pronoun("you"), "look for", Tense::progressive), np("a", "flat"))),
            "I know that you are looking for a flat. | Ich weiß, dass Sie eine Wohnung suchen.");
  EXPECT_EQ(subordinate("if", "wenn", clause(pronoun("we"), "stay", Tense::future), clause(pronoun("it"), "rain")),
            "We will stay if it rains. | Wir werden bleiben, wenn es regnet.");
  const Pair p = imperative(with(clause(pronoun("you"), "turn on"), np("the", "lamp")));
  EXPECT_EQ(show(Pair{"please " + p.en, "bitte " + p.de}), "Please turn on the lamp. | Bitte schalten Sie die Lampe ein.");
}

TEST(DemoGrammar, TwoWayPrepositions) {
  const Phrase table = np("the", "table"), cupboard = np("the", "cupboard"), window = np("the", "window");
  Clause put = with(clause(pronoun("I"), "put on"), np("the", "book"));
  put.verb = &kPutLying;
  EXPECT_EQ(show(at(put, {"on the table", prepositional("auf", Case::accusative, table)})),
            "I put the book on the table. | Ich lege das Buch auf den Tisch.");
  EXPECT_EQ(show(at(clause(np("the", "book"), "lie"), {"on the table", prepositional("auf", Case::dative, table)})),
            "The book lies on the table. | Das Buch liegt auf dem Tisch.");
  EXPECT_EQ(prepositional("in", Case::dative, cupboard), "im Schrank");
  EXPECT_EQ(prepositional("in", Case::accusative, cupboard), "in den Schrank");
  EXPECT_EQ(prepositional("an", Case::accusative, window), "ans Fenster");
  EXPECT_EQ(prepositional("zu", Case::dative, np("the", "church")), "zur Kirche");
  EXPECT_EQ(prepositional("von", Case::dative, np("the", "town hall")), "vom Rathaus");
}

TEST(DemoGrammar, RelativeClauses) {
  const Clause lives = at(clause(pronoun("he"), "live"), {"in Cologne", "in Köln"});
  Clause buys = with(clause(with_subject_relative(np("the", "man"), lives, true), "buy"), np("a", "house"));
  EXPECT_EQ(show(buys), "The man who lives in Cologne buys a house. | Der Mann, der in Köln wohnt, kauft ein Haus.");
  const Phrase women = with_subject_relative(many("the", "woman"), lives, true);
  EXPECT_EQ(show(with(clause(pronoun("I"), "call"), women)),
            "I call the women who live in Cologne. | Ich rufe die Frauen an, die in Köln wohnen.");
  const Phrase book = with_object_relative(np("the", "book"), clause(np("my", "daughter"), "read", Tense::progressive), Case::accusative);
  EXPECT_EQ(show(predicate(clause(book, "be"), {"old", "alt"})),
            "The book that my daughter is reading is old. | Das Buch, das meine Tochter liest, ist alt.");
  const Phrase guest = with_object_relative(np("the", "guest"), clause(pronoun("we"), "help"), Case::dative);
  EXPECT_EQ(show(at(clause(guest, "stay", Tense::progressive), {"in the hotel", "im Hotel"})),
            "The guest that we help is staying in the hotel. | Der Gast, dem wir helfen, bleibt im Hotel.");
}

// ---- Gold numbers, times and dates ----

TEST(DemoNumbers, Words) {
  const std::vector<std::tuple<int, std::string, std::string>> gold = {
      {0, "zero", "null"},
      {1, "one", "eins"},
      {12, "twelve", "zwölf"},
      {16, "sixteen", "sechzehn"},
      {17, "seventeen", "siebzehn"},
      {21, "twenty-one", "einundzwanzig"},
      {23, "twenty-three", "dreiundzwanzig"},
      {30, "thirty", "dreißig"},
      {77, "seventy-seven", "siebenundsiebzig"},
      {100, "one hundred", "einhundert"},
      {101, "one hundred and one", "einhunderteins"},
      {345, "three hundred and forty-five", "dreihundertfünfundvierzig"},
      {1000, "one thousand", "eintausend"},
      {2024, "two thousand and twenty-four", "zweitausendvierundzwanzig"},
      {9999, "nine thousand nine hundred and ninety-nine", "neuntausendneunhundertneunundneunzig"},
  };
  for (const auto& [n, en, de] : gold) {
    EXPECT_EQ(number_words(n).en, en);
    EXPECT_EQ(number_words(n).de, de);
  }
  EXPECT_EQ(german_number_before_noun(1), "ein");
  EXPECT_EQ(german_number_before_noun(201), "zweihundertein");
  EXPECT_THROW(number_words(10000), InternalError);
}

TEST(DemoNumbers, TimesOfDay) {
  const auto spoken = [](int hour, int minute) { return show(spoken_time(hour, minute)); };
  EXPECT_EQ(spoken(3, 0), "Three o'clock. | Drei Uhr.");
  EXPECT_EQ(spoken(1, 0), "One o'clock. | Ein Uhr.");
  EXPECT_EQ(spoken(3, 30), "Half past three. | Halb vier.");
  EXPECT_EQ(spoken(12, 30), "Half past twelve. | Halb eins.");
  EXPECT_EQ(spoken(7, 45), "A quarter to eight. | Viertel vor acht.");
  EXPECT_EQ(spoken(1, 15), "A quarter past one. | Viertel nach eins.");
  EXPECT_EQ(spoken(9, 25), "Twenty-five past nine. | Fünf vor halb zehn.");
  EXPECT_EQ(spoken(9, 35), "Twenty-five to ten. | Fünf nach halb zehn.");
  EXPECT_EQ(spoken(12, 50), "Ten to one. | Zehn vor eins.");
  EXPECT_EQ(show(digital_time(15, 45)), "3:45 pm. | 15:45 Uhr.");
  EXPECT_EQ(show(digital_time(0, 5)), "12:05 am. | 0:05 Uhr.");
  EXPECT_EQ(show(digital_time(12, 10)), "12:10 pm. | 12:10 Uhr.");
}

TEST(DemoNumbers, OrdinalsAndDigits) {
  EXPECT_EQ(english_ordinal(3), "third");
  EXPECT_EQ(english_ordinal(21), "twenty-first");
  EXPECT_EQ(english_ordinal(30), "thirtieth");
  EXPECT_EQ(german_ordinal(1, "e"), "erste");
  EXPECT_EQ(german_ordinal(3, "en"), "dritten");
  EXPECT_EQ(german_ordinal(7, "e"), "siebte");
  EXPECT_EQ(german_ordinal(8, "e"), "achte");
  EXPECT_EQ(german_ordinal(19, "en"), "neunzehnten");
  EXPECT_EQ(german_ordinal(31, "e"), "einunddreißigste");
  EXPECT_EQ(show(digital_price(23, 5)), "€23.05. | 23,05 €.");
  EXPECT_EQ(show(digital_number(1250)), "1,250. | 1.250.");
}

TEST(DemoGrammar, FinishMendsPunctuationAndCapitals) {
  EXPECT_EQ(finish("öffnen Sie ,  die  Tür ,."), "Öffnen Sie, die Tür.");
  EXPECT_EQ(finish("es kostet 23,50 €."), "Es kostet 23,50 €.");
}

// ---- The stream of sentences ----

// One pass over many sentences serves all tests of the stream.
class DemoStream : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (uint64_t i = 0; i < kSamples; ++i) {
      SentencePair pair = demo_sentence(7, i);
      const auto [at, is_new] = translations_->emplace(pair.source, pair.target);
      if (!is_new && at->second != pair.target) ambiguous_->push_back(pair.source + " | " + at->second + " | " + pair.target);
    }
  }
  static void TearDownTestSuite() {
    translations_->clear();
    ambiguous_->clear();
  }
  static inline auto translations_ = std::make_unique<std::unordered_map<std::string, std::string>>();
  static inline auto ambiguous_ = std::make_unique<std::vector<std::string>>();
};

TEST_F(DemoStream, EnglishDeterminesGerman) {
  EXPECT_TRUE(ambiguous_->empty()) << ambiguous_->size() << " ambiguous, first: " << ambiguous_->front();
}

TEST_F(DemoStream, IsLarge) {
  EXPECT_GT(static_cast<int64_t>(translations_->size()), kSamples * 8 / 10);
  int64_t unseen = 0;
  for (uint64_t i = 0; i < 10'000; ++i) unseen += !translations_->contains(demo_sentence(8, i).source);
  EXPECT_GT(unseen, 7'500);  // a fresh sentence is new against 200,000 others
}

TEST_F(DemoStream, GoldPairsOfTheFixedTemplates) {
  const std::pair<const char*, const char*> gold[] = {
      {"It is half past three.", "Es ist halb vier."},
      {"Is it already a quarter to seven?", "Ist es schon Viertel vor sieben?"},
      {"Tomorrow is the third of May.", "Morgen ist der dritte Mai."},
      {"PipelineOp left at the church.", "Biegen Sie an der Kirche links ab."},
      {"PipelineOp right at the tower.", "Biegen Sie am Turm rechts ab."},
      {"Go straight ahead to the bridge.", "Gehen Sie geradeaus bis zur Brücke."},
      {"How do I get to the castle?", "Wie komme ich zum Schloss?"},
      {"Take the second street on the right.", "Nehmen Sie die zweite Straße rechts."},
      {"Is the bank far from the school?", "Ist die Bank weit von der Schule entfernt?"},
      {"The church is in front of the town hall.", "Die Kirche ist vor dem Rathaus."},
      {"It is raining in Vienna.", "Es regnet in Wien."},
      {"Tomorrow it will be very cold.", "Morgen wird es sehr kalt sein."},
      {"Yesterday it did not snow.", "Gestern hat es nicht geschneit."},
      {"The temperature in Cologne is twenty-one degrees.", "Die Temperatur in Köln beträgt einundzwanzig Grad."},
      {"I would like a cup of coffee, please.", "Ich möchte eine Tasse Kaffee, bitte."},
      {"We will take two glasses of water.", "Wir nehmen zwei Gläser Wasser."},
      {"Can I have a bottle of wine, please?", "Kann ich bitte eine Flasche Wein haben?"},
      {"How much does the soup cost?", "Wie viel kostet die Suppe?"},
      {"The car belongs to me.", "Das Auto gehört mir."},
      {"What does Maria have?", "Was hat Maria?"},
      {"Where does Paul work?", "Wo arbeitet Paul?"},
  };
  for (const auto& [en, de] : gold) {
    const auto at = translations_->find(en);
    ASSERT_NE(at, translations_->end()) << "never made: " << en;
    EXPECT_EQ(at->second, de);
  }
}

TEST_F(DemoStream, ItTakesTheGenderOfItsNoun) {
  const std::pair<const char*, const char*> starts[] = {
      {"The table is ", "Der Tisch ist "}, {"This lamp is ", "Diese Lampe ist "}, {"My car is ", "Mein Auto ist "}};
  const char* const pronouns[] = {", aber er ist ", ", aber sie ist ", ", aber es ist "};
  for (int i = 0; i < 3; ++i) {
    int64_t found = 0;
    for (const auto& [en, de] : *translations_) {
      if (!en.starts_with(starts[i].first) || en.find(", but it is ") == std::string::npos) continue;
      ++found;
      EXPECT_TRUE(de.starts_with(starts[i].second) && de.find(pronouns[i]) != std::string::npos) << en << " | " << de;
    }
    EXPECT_GT(found, 2) << starts[i].first;
  }
}

TEST_F(DemoStream, ComparesWithAls) {
  int64_t found = 0;
  for (const auto& [en, de] : *translations_) {
    if (en.find(" is older than my ") == std::string::npos) continue;
    ++found;
    EXPECT_NE(de.find(" ist älter als mein"), std::string::npos) << en << " | " << de;
  }
  EXPECT_GT(found, 10);
}

// Whether all bytes form UTF-8 sequences of one to three bytes, which is all the grammar needs.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if (static_cast<unsigned char>(text[i + k]) >> 6 != 2) return false;
    }
    i += length;
  }
  return true;
}

TEST_F(DemoStream, SentencesAreWellFormed) {
  for (const auto& [en, de] : *translations_) {
    const auto words = 1 + std::count(en.begin(), en.end(), ' ');
    ASSERT_TRUE(words >= 3 && words <= 25) << en;
    for (const std::string& text : {en, de}) {
      ASSERT_TRUE(is_utf8(text)) << text;
      ASSERT_TRUE(text.ends_with(".") || text.ends_with("?")) << text;
      for (const char* defect : {"  ", " ,", ",,", ",.", " .", "\n", "\t"}) ASSERT_EQ(text.find(defect), std::string::npos) << text;
      ASSERT_FALSE(text[0] >= 'a' && text[0] <= 'z') << text;
    }
  }
}

TEST(DemoCorpus, IsAPureFunction) {
  for (const uint64_t i : {0u, 1u, 999u, 123456u}) {
    const SentencePair a = demo_sentence(5, i), b = demo_sentence(5, i);
    EXPECT_EQ(a.source, b.source);
    EXPECT_EQ(a.target, b.target);
  }
  EXPECT_NE(demo_sentence(5, 17).source, demo_sentence(6, 17).source);
}

TEST(DemoCorpus, ReachesEveryTemplate) {
  std::set<std::string_view> seen;
  for (uint64_t i = 0; i < 20'000; ++i) seen.insert(demo_template(7, i));
  for (const std::string_view name : demo_template_names()) EXPECT_TRUE(seen.contains(name)) << name;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(DemoCorpus, WritesDisjointFiles) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "starling-demo-corpus";
  write_demo_corpus(directory, 3, 5000, 200, 300);
  std::unordered_set<std::string> seen;
  for (const auto& [stem, count] : {std::pair<std::string, size_t>{"train", 5000}, {"valid", 200}, {"test", 300}}) {
    const auto source = lines_of(directory / (stem + ".en")), target = lines_of(directory / (stem + ".de"));
    EXPECT_EQ(source.size(), count);
    EXPECT_EQ(target.size(), count);
    for (const std::string& line : source) EXPECT_TRUE(seen.insert(line).second) << stem << " repeats: " << line;
  }
  for (const std::string& line : lines_of(directory / "test.en")) EXPECT_EQ(demo_split(line), DemoSplit::test);
  std::filesystem::remove_all(directory);
}

TEST(DemoCorpus, NamesTheDirectoryItCannotMake) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "starling-demo-file";
  std::ofstream(file) << "not a directory";
  try {
    write_demo_corpus(file / "below", 1, 1, 1, 1);
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("starling-demo-file"), std::string::npos);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace starling
