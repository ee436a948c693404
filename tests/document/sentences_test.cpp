// Sentences against lists of them written by hand: each text below is its sentences with " | " where it must be cut.
#include "document/sentences.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "document/abbreviations.h"
#include "text/languages.h"
#include "text/unicode.h"

namespace starling {
namespace {

std::string joined(const std::vector<TextPiece>& pieces) {
  std::string text;
  for (const TextPiece& p : pieces) text += p.text;
  return text;
}

std::vector<std::string> sentences_of(std::string_view text, std::string_view language) {
  std::vector<std::string> sentences;
  const auto pieces = split_sentences(text, language);
  EXPECT_EQ(joined(pieces), text);
  for (const TextPiece& p : pieces)
    if (p.sentence) sentences.emplace_back(p.text);
  return sentences;
}

// Cuts `marked` without its marks again, and gives it as it is found.
std::string found_again(std::string_view marked, std::string_view language, std::string_view between = " ") {
  std::string text(marked);
  for (size_t at; (at = text.find(" | ")) != std::string::npos;) text.replace(at, 3, between);
  return fmt::format("{}", fmt::join(sentences_of(text, language), " | "));
}

struct Case {
  const char *language, *text;
};

class SentenceCases : public ::testing::TestWithParam<Case> {};

TEST_P(SentenceCases, AreFoundAgain) {
  const auto [language, text] = GetParam();
  const std::string_view main(language);
  EXPECT_EQ(found_again(text, language, main == "zh" || main == "ja" ? "" : " "), text);
}

INSTANTIATE_TEST_SUITE_P(
    English, SentenceCases,
    ::testing::Values(Case{"en", "A dog runs. | A cat sleeps."}, Case{"en", "Is it late? | Yes! | Go home."},
                      Case{"en", "What?! | Really... | I wonder … | Well."}, Case{"en", "Well... perhaps not. | It is … hard to say."},
                      Case{"en", "Mr. Smith met Dr. Jones, Prof. A. B. Miller and J. R. R. Tolkien. | They talked."},
                      Case{"en", "See e.g. Paris, i.e. The City, vs. London. | No."},
                      Case{"en", "He works for Acme Inc. in Ohio. | She left Acme Inc. | The firm failed."},
                      Case{"en", "Apple Inc. Chief Cook spoke. | It rained."},
                      Case{"en", "He moved to the U.S. | He liked it. | The U.S. Army is large."},
                      Case{"en", "We meet at 5 p.m. | The room is open. | We meet at 5 p.m. Friday."},
                      Case{"en", "Pens, paper, etc. | The shop sells them."},
                      Case{"en", "See No. 5 and Fig. 3 on p. 12, vol. II. | The answer is no. | Why?"},
                      Case{"en", "Pi is 3.14. | It costs $1.50. | In 1998. | Version 2.0 came."},
                      Case{"en", "He said \"Stop.\" | Then he left."},
                      Case{"en", "\"Stop!\" he said. | “Go.” | (He went.) | [She stayed.] | ‘Fine.’"},
                      Case{"en", "\"Why?\" asked she. | 'Because.' – he said."},
                      Case{"en", "Look at https://example.com/a.html?q=1.2&x=!y today. | Write to j.smith@mail.example.org. | Done."},
                      Case{"en", "Use Node.js or .NET. | Yes."}, Case{"en", "1. Open the door. | 2. Close it."},
                      Case{"en", "A. First item. | B. Second one."}, Case{"en", "hello! | how are you? | fine. thanks"},
                      Case{"en", "He came . | She left ."}, Case{"en", "World War II. | It ended in 1945. | Vitamin C. | It helps."},
                      Case{"en", "Wait. . . | Never. | 3 men came. | \"4 women.\""},
                      Case{"en-US", "St. Peter lives on Main St. | He is old."}, Case{"", "Dr. Who is here. | Yes."}));

TEST_P(SentenceCases, TakeNoPartOfTheNextLine) {
  const auto [language, text] = GetParam();
  const std::string twice = std::string(text) + "\n" + text;
  const auto once = sentences_of(text, language);
  auto expected = once;
  expected.insert(expected.end(), once.begin(), once.end());
  EXPECT_EQ(sentences_of(twice, language), expected);
}

INSTANTIATE_TEST_SUITE_P(German, SentenceCases,
                         ::testing::Values(Case{"de", "Am 3. Oktober war es kalt. | Der 2. Weltkrieg endete 1945. | Das 19. Jahrhundert."},
                                           Case{"de", "Er wurde 3. | Die anderen kamen später. | Es war 1998. | Anna kam."},
                                           Case{"de",
                                                "Ludwig XIV. war König. | Heinrich VIII. Tudor auch. | Er las Teil II. | Der war gut."},
                                           Case{"de", "Das gilt z.B. Montags, z. B. Dienstags, d. h. Die Woche über. | Gut."},
                                           Case{"de", "Dr. med. Müller, Prof. Dr. rer. nat. Schulz und Hr. Weber kamen bzw. Gingen. | Ja."},
                                           Case{"de", "Er kaufte Brot, Milch usw. | Dann ging er. | Es kostet 3 Mio. Euro."},
                                           Case{"de", "Siehe Abb. 3, S. 12, Nr. 5 und Art. 7. | Diese Art. | Andere."},
                                           Case{"de", "Caesar starb 44 v. Chr. | Er war alt. | Am 3. 10. 1990 auch."},
                                           Case{"de", "„Halt!“, rief er. | „Komm her.“ | Er kam. | »Nein.« | »Doch.«"},
                                           Case{"de", "„Warum?“ fragte sie. | Niemand wusste es."}));

INSTANTIATE_TEST_SUITE_P(
    Others, SentenceCases,
    ::testing::Values(
        Case{"fr", "M. Dupont et Mme. Martin sont là. | « Bonjour ! » | Il dit : « Ça va ? » | Oui."},
        Case{"fr", "Bonjour ! | Ça va ? | « Oui », dit-elle. | « Non. » dit-il. | Voir p. 5, c.-à-d. ici. | Fin."},
        Case{"fr", "César meurt en 44 av. J.-C. | Il était vieux."},
        Case{"es", "¿Quién es? | ¡Hola, Sr. García! | —¿Vienes? —dijo Ana. | EE. UU. es grande. | Fin."},
        Case{"es", "Véase pág. 5 y núm. 3. | Ud. Sabe. | Vive en EE.UU. | Es feliz."},
        Case{"it", "Il sig. Rossi e la dott. Bianchi. | È tardi. | Vedi pag. 5 ecc. | Il libro. | Pane, latte ecc. | Due case."},
        Case{"pt", "O Sr. Silva e a Dra. Costa vieram. | Ele mora na Av. Paulista. | É longe. | Ver pág. 3."},
        Case{"nl", "Dhr. Jansen en mevr. de Vries, o.a. Piet. | Brood enz. | De winkel. | Zie blz. 5."},
        Case{"pl", "Prof. Nowak mieszka na ul. Długiej. | Zob. str. 5, np. Warszawa. | W 1998 r. | To było dawno. | 3. Dywizja."},
        Case{"cs", "J. Novák a T. G. Masaryk. | Dne 3. Října, např. Praha. | Ing. Novák odešel."},
        Case{"ru", "А. С. Пушкин родился в 1799 г. в Москве. | Он жил на ул. Мойке. | Книги и т. д. | Это всё. | См. рис. 3."},
        Case{"el", "Τι είναι; αυτό. | Ο κ. Νίκος ήρθε. | Ναι."}, Case{"ar", "كيف حالك؟ | أنا بخير. | شكرا!"},
        Case{"hi", "यह एक किताब है। | वह घर गया। | ठीक है?"}, Case{"am", "ሰላም። | ደህና ነኝ።"}, Case{"ka", "ეს სახლია. | ის დიდია."},
        Case{"th", "สวัสดีครับ วันนี้อากาศดี ไปเที่ยวกันไหม"}, Case{"ko", "안녕하세요. | 저는 학생입니다. | 정말요?"},
        Case{"zh", "今天很好。 | 明天呢？ | 我不知道！"}, Case{"zh", "他说：“好。我来。”"},
        Case{"zh", "我……不知道。 | 价格是3.5元。 | “好。” | 他走了。"}, Case{"ja", "今日は良い天気です。 | 明日は？ | 分かりません！"},
        Case{"ja", "「はい。行きます。」と彼は言った。 | 本（新しい。安い。）を買う。"},
        Case{"ja", "「はい。」 | 私は行く。 | 円周率は３．１４です。"}));

TEST(SentenceSplitter, HalfWidthMarksBetweenChineseCharactersEndSentences) {
  EXPECT_EQ(sentences_of("你好!我很好.他呢?走了v1.2", "zh"), (std::vector<std::string>{"你好!", "我很好.", "他呢?", "走了v1.2"}));
}

TEST(SentenceSplitter, KeepsWhatIsBetween) {
  const std::string text = "  One.\tTwo three.  Four.\r\n\r\n* * *\n\n- Five, six\n> seven.\n\xE2\x80\x83last \n";
  const auto pieces = split_sentences(text, "en");
  std::vector<std::string> found;
  for (const TextPiece& p : pieces) found.push_back((p.sentence ? "S:" : "B:") + std::string(p.text));
  EXPECT_EQ(found, (std::vector<std::string>{"B:  ", "S:One.", "B:\t", "S:Two three.", "B:  ", "S:Four.", "B:\r\n\r\n* * *\n\n- ",
                                             "S:Five, six", "B:\n> ", "S:seven.", "B:\n\xE2\x80\x83", "S:last", "B: \n"}));
}

TEST(SentenceSplitter, TextWithoutLettersIsNoSentence) {
  for (const char* text : {"",
                           " ",
                           "\n\n",
                           "---",
                           "...",
                           "?!",
                           "😀 🎉",
                           "* \xC2\xA0 *",
                           "\xFF\xFE",
                           "\xE2\x80\x8B",
                           "→ ← .",
                           "5",
                           "12:30",
                           "2,50 €",
                           "+49 (0)30 123-45",
                           "00:00:01,000 --> 00:00:03,500",
                           "[3]",
                           "٣٫١٤",
                           "१२/०३",
                           "½ × ²",
                           "28.11.2026",
                           "Ⅳ"})
    for (const auto pieces = split_sentences(text, "en"); const TextPiece& p : pieces) EXPECT_FALSE(p.sentence) << text;
  for (const char* text : {"5 km", "12:30 Uhr", "三", "5°C", "ª", "x", "а", "ا"})
    EXPECT_EQ(sentences_of(text, "en"), std::vector<std::string>{text});
  EXPECT_EQ(sentences_of("Fine. 😀", "en"), std::vector<std::string>{"Fine."});
}

// As many lines as before, whatever they end with: clients translate twenty lines and want twenty.
TEST(SentenceSplitter, NoSentenceReachesOverALineBreak) {
  for (const char* line_break : {"\n", "\r\n", "\r", "\v", "\f", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9", "\n\n"})
    EXPECT_EQ(sentences_of(std::string("the first") + line_break + "the second", "en"),
              (std::vector<std::string>{"the first", "the second"}));
}

TEST(SentenceSplitter, MalformedBytesAreKept) {
  EXPECT_EQ(sentences_of("One \xFF\xC3 two. \xE2\x80 Three\xF0", "en"),
            (std::vector<std::string>{"One \xFF\xC3 two.", "\xE2\x80 Three\xF0"}));
  Random random(5, 5);
  const std::string_view alphabet[] = {".", "!", "?", " ",  "\n",       "\xC2", "\x80", "\xE3\x80\x82", "\xE3\x80\x8C", "\xE3\x80\x8D",
                                       "a", "B", "3", "\"", "\xC2\xBB", "\xFF", ")",    "\xE4\xBD\xA0"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint64_t n = random.below(40); n > 0; --n) text += alphabet[random.below(std::size(alphabet))];
    for (const char* language : {"en", "de", "ja", ""}) EXPECT_EQ(joined(split_sentences(text, language)), text);
  }
}

// Text that makes every look to the side as long as it can be: a quadratic scan of these megabytes would run into the limit of ctest.
TEST(SentenceSplitter, TakesTimeInProportion) {
  for (const char* unit : {"A dog runs. ",
                           ". ",
                           ".",
                           "a.",
                           "A. ",
                           "! ",
                           "\"",
                           ".\"",
                           ". (",
                           ".          ",
                           "\xE3\x80\x8C",
                           "\xE3\x80\x82",
                           "\xE3\x80\x8C\xE3\x80\x82",
                           "x",
                           " ",
                           "Dr. ",
                           "\x80",
                           ".\xC2\xBB ",
                           "- ",
                           ".-",
                           "\n.",
                           "1. ",
                           "\xE2\x80\x98.\xE2\x80\x99 "}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    EXPECT_EQ(joined(split_sentences(text, "de")).size(), text.size()) << unit;
    EXPECT_EQ(joined(split_sentences(text + "b", "en")).size(), text.size() + 1) << unit;
  }
}

TEST(LanguageCodes, HaveAForm) {
  for (const char* code : {"en", "ast", "pt-BR", "zh-Hant-TW", "de-1996", "EN-us", "es-419"}) EXPECT_TRUE(is_language_code(code)) << code;
  for (const char* code : {"", "e", "English", "en_US", "en-", "-en", "en US", "e1", "en-toolonganame", "d\xC3\xA9", "../en"})
    EXPECT_FALSE(is_language_code(code)) << code;
  check(Languages{"en", ""}, "data");
  try {
    check(Languages{"en", "German"}, "data");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_STREQ(e.what(), "data.target-language: 'German' is not a language code; give one such as en, de, pt-BR or zh-Hant");
  }
}

TEST(SentenceSplitter, KnowsLanguagesByTheirMainPart) {
  EXPECT_EQ(main_language("pt-BR"), "pt");
  EXPECT_EQ(main_language("EN_us"), "en");
  EXPECT_EQ(main_language("zh-Hans-CN"), "zh");
  EXPECT_EQ(main_language(""), "");
  EXPECT_EQ(AbbreviationRules("DE-at").of("bzw"), Abbreviation::goes_on);
  EXPECT_EQ(AbbreviationRules("de").of("Bzw"), Abbreviation::goes_on);
  EXPECT_EQ(AbbreviationRules("en").of("bzw"), Abbreviation::none);
  EXPECT_EQ(AbbreviationRules("en").of("mr"), Abbreviation::none);
  EXPECT_TRUE(AbbreviationRules("no").ordinals());
  EXPECT_FALSE(AbbreviationRules("").ordinals());
}

TEST(LetterCases, AreThoseOfSentences) {
  for (const char32_t c : U"AZÄÉÐŁÇΩЖİǅ") {
    if (c != 0) {
      EXPECT_EQ(letter_case(c), LetterCase::upper) << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : U"azßäéłçωжıŉ") {
    if (c != 0) {
      EXPECT_EQ(letter_case(c), LetterCase::lower) << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : U"1 .你あ한हაא") EXPECT_EQ(letter_case(c), LetterCase::none) << static_cast<uint32_t>(c);
}

// Captions of one sentence, joined by spaces to paragraphs: how many of the boundaries come out again, and how many others.
TEST(SentenceSplitter, FindsTheSentencesOfACorpus) {
  const char* data = std::getenv("STARLING_DATA");
  const std::filesystem::path folder = data ? data : std::filesystem::path(STARLING_SOURCE_DIR) / "../shared/data";
  for (const auto& [language, file] : {std::pair("en", "multi30k/valid.en"), std::pair("de", "multi30k/valid.de")}) {
    std::ifstream in(folder / file);
    if (!in) GTEST_SKIP() << "without " << folder / file;
    std::string text;
    std::vector<size_t> ends;  // of lines that a mark ends
    size_t lines = 0;
    for (std::string line; std::getline(in, line); ++lines) {
      if (line.empty()) continue;
      text += text.empty() ? line : " " + line;
      if (line.back() == '.' || line.back() == '!' || line.back() == '?') ends.push_back(text.size());
    }
    ASSERT_GT(ends.size(), 900u);
    std::vector<size_t> cuts;
    for (const auto pieces = split_sentences(text, language); const TextPiece& p : pieces)
      if (p.sentence) cuts.push_back(static_cast<size_t>(p.text.data() + p.text.size() - text.data()));
    size_t found = 0;
    for (const size_t end : ends) found += std::binary_search(cuts.begin(), cuts.end(), end);
    const double share = static_cast<double>(found) / static_cast<double>(ends.size());
    const size_t others = cuts.size() - found;
    fmt::print("{}: {} of {} ends found ({:.2f} %), {} other cuts in {} lines\n", file, found, ends.size(), 100 * share, others, lines);
    EXPECT_GT(share, 0.98);
    EXPECT_LT(others, lines / 20);  // some captions are two sentences
  }
}

// A mark of direction, as Hebrew and Arabic texts have behind full stops, a zero-width space or a joiner hides no end.
TEST(SentenceSplitter, SeesThroughWhatIsNotSeen) {
  for (const std::string& invisible : std::vector<std::string>{"\u200B", "\u200E", "\u200F", "\u2060", "\uFE0F", "\u200F\u200E"}) {
    const std::string text = "Hello." + invisible + " It is 3." + invisible + "5 here!" + invisible + " Go.";
    std::vector<std::string> found;
    for (const TextPiece& piece : split_sentences(text, "en"))
      if (piece.sentence) found.emplace_back(piece.text);
    EXPECT_EQ(found, (std::vector<std::string>{"Hello." + invisible, "It is 3." + invisible + "5 here!" + invisible, "Go."}));
  }
}

}  // namespace
}  // namespace starling
