// Which language a text is in: whole pages with all that surrounds their words, a few words, and nothing at all.
#include "text/detect_language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "document/document.h"

namespace starling {
namespace {

const std::vector<std::string> kAll{"en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "pl", "cs", "hu",
                                    "ro", "tr", "el", "ru", "uk", "bg", "ja", "zh", "ko", "ar", "he", "hi", "vi"};

Detected detect(const std::string& text, DocumentFormat format, const std::vector<std::string>& known = kAll) {
  return detect_languages(Document(text, format, "").words(), known).front();
}

// Two sentences in each language: about a group of people before a house, and the weather.
struct Sample {
  const char *language, *first, *second;
};
constexpr Sample kSamples[] = {
    {"de", "Eine Gruppe von Menschen steht vor einem Haus.", "Das Wetter ist heute sehr schön."},
    {"fr", "Un groupe de personnes se tient devant une maison.", "Le temps est très beau aujourd'hui."},
    {"es", "Un grupo de personas está delante de una casa.", "Hoy hace muy buen tiempo en la ciudad."},
    {"it", "Un gruppo di persone sta davanti a una casa.", "Oggi il tempo è molto bello."},
    {"pt", "Um grupo de pessoas está na frente de uma casa.", "O tempo está muito bonito hoje, não acha?"},
    {"nl", "Een groep mensen staat voor een huis.", "Het weer is vandaag erg mooi."},
    {"sv", "En grupp människor står framför ett hus.", "Vädret är mycket vackert i dag."},
    {"da", "En gruppe mennesker står foran et hus.", "Vejret er meget smukt i dag, og vi går en tur."},
    {"fi", "Joukko ihmisiä seisoo talon edessä.", "Sää on tänään erittäin kaunis."},
    {"pl", "Grupa ludzi stoi przed domem.", "Pogoda jest dziś bardzo piękna."},
    {"cs", "Skupina lidí stojí před domem.", "Počasí je dnes velmi krásné."},
    {"hu", "Egy csoport ember áll egy ház előtt.", "Ma nagyon szép az idő."},
    {"ro", "Un grup de oameni stă în fața unei case.", "Vremea este foarte frumoasă astăzi."},
    {"tr", "Bir grup insan bir evin önünde duruyor.", "Bugün hava çok güzel."},
    {"el", "Μια ομάδα ανθρώπων στέκεται μπροστά σε ένα σπίτι.", "Ο καιρός είναι πολύ ωραίος σήμερα."},
    {"ru", "Группа людей стоит перед домом.", "Погода сегодня очень хорошая."},
    {"uk", "Група людей стоїть перед будинком.", "Погода сьогодні дуже гарна."},
    {"bg", "Група хора стои пред една къща.", "Времето днес е много хубаво."},
    {"ja", "人々の集団が家の前に立っています。", "今日はとても天気がいいです。"},
    {"zh", "一群人站在一座房子前面。", "今天的天气非常好。"},
    {"ko", "한 무리의 사람들이 집 앞에 서 있습니다.", "오늘은 날씨가 매우 좋습니다."},
    {"ar", "مجموعة من الناس تقف أمام منزل.", "الطقس جميل جدا اليوم."},
    {"he", "קבוצת אנשים עומדת מול בית.", "מזג האוויר יפה מאוד היום."},
    {"hi", "लोगों का एक समूह एक घर के सामने खड़ा है।", "आज मौसम बहुत अच्छा है।"},
    {"vi", "Một nhóm người đứng trước một ngôi nhà.", "Hôm nay thời tiết rất đẹp."},
    {"en", "A group of people stands in front of a house.", "The weather is very nice today."},
};

const std::string kAddress =
    "https://www.example.org/the-best-houses-for-everyone-who-wants-to-live-there?utm_source=newsletter&utm_campaign=summer-houses";

// The five forms of a text in which its language was not found.
std::vector<std::pair<std::string, DocumentFormat>> forms(const std::string& text) {
  std::string emoji = "<p>" + text;
  for (const char* name : {"heart_eyes", "thumbs_up", "folded_hands"})
    emoji += fmt::format(R"( <img class="emoji" title=":{0}:" alt=":{0}:" src="/images/emoji/twitter/{0}.png?v=12">)", name);
  return {{text, DocumentFormat::text},
          {R"(<div class="post-content wp-block-group is-layout-constrained"><p class="has-text-align-center has-large-font-size">)" +
               text + R"( <a href=")" + kAddress + R"(" title="The best houses for everyone who wants to live there">)" + text +
               R"(</a></p><img src="/images/people-standing-in-front-of-a-house.jpg" alt="People standing in front of a house"></div>)",
           DocumentFormat::html},
          {"<style>.content { color: black; background: white; font-size: large; } .header .title { display: block; text-align: center; } "
           "/* the styles of this page are made for large screens and for printing */</style><p>" +
               text + "</p>",
           DocumentFormat::html},
          {emoji + "</p>", DocumentFormat::html},
          {text + " " + kAddress, DocumentFormat::text}};
}

// Pages around two sentences, as programs write them.
std::vector<std::string> pages(const Sample& s) {
  return {
      // A whole page of a content system.
      fmt::format(R"(<!DOCTYPE html>
<html lang="en-US"><head><meta charset="utf-8"><meta name="description" content="A site about houses and the people in front of them">
<script type="application/ld+json">{{"@context":"https://schema.org","@type":"Article","headline":"People in front of a house"}}</script>
<link rel="stylesheet" href="/assets/application-with-all-the-styles.css"><script>window.dataLayer = window.dataLayer || []; // analytics
function track(event) {{ if (event && window.consent === "given") {{ dataLayer.push(arguments); }} }}</script></head>
<body class="home page-template-default logged-in has-sidebar" data-onload="start everything when the page is there">
<!-- the header of this page was made by the theme; do not change it by hand -->
<p class="lead">{}</p><p data-controller="tooltip" data-tooltip-text-value="Read more about this">{}</p></body></html>)",
                  s.first, s.second),
      // A post of a social network: a mention, tags, a shortened address.
      fmt::format(R"(<p><span class="h-card" translate="no"><a href="https://example.social/@gardener" class="u-url mention">)"
                  R"(@<span>gardener</span></a></span> {} )"
                  R"(<a href="https://example.social/tags/photography" class="mention hashtag" rel="tag">#<span>photography</span></a></p>)"
                  R"(<p>{} <a href="{}" rel="nofollow noopener" target="_blank"><span class="invisible">https://www.</span>)"
                  R"(<span class="ellipsis">example.org/the-best-houses-for</span></a></p>)",
                  s.first, s.second, kAddress),
      // A manual: code, keys, a picture that is drawn.
      fmt::format(
          R"(<h1>{}</h1><pre><code class="language-python">for house in houses:
    print("there are people in front of the house", house.number)</code></pre><p>{} <code>)"
          R"(git commit --message "the weather is fine"</code>)"
          R"( <kbd>Shift</kbd></p><svg viewBox="0 0 8 8"><title>A drawing of the house with people</title><path d="M0 0h8"/></svg>)",
          s.first, s.second),
      // A letter with tables and inline styles.
      fmt::format(
          R"(<table width="100%" cellpadding="0" style="font-family: 'Helvetica Neue', Arial, sans-serif; background-color: white">)"
          R"(<tr><td align="center" style="padding: 0 24px; border-collapse: collapse">{}<br>{}</td></tr></table>)"
          R"(<a href="mailto:newsletter-and-other-letters@example.org">newsletter-and-other-letters@example.org</a>)",
          s.first, s.second),
      // A text of a program, with variables.
      fmt::format(
          R"(<p>{} {{{{ number_of_people_in_the_house }}}} %(house_name)s</p><ul><li class="list-group-item">{} ${{weather}}</li></ul>)",
          s.first, s.second)};
}

TEST(DetectLanguage, AllFormsOfATextAreInItsLanguage) {
  for (const Sample& s : kSamples)
    for (const auto& [text, format] : forms(s.first)) {
      const Detected found = detect(text, format);
      EXPECT_EQ(found.language, s.language) << text;
      EXPECT_GE(found.confidence, 50) << text;
    }
}

TEST(DetectLanguage, PagesAreInTheLanguageOfTheirWords) {
  for (const Sample& s : kSamples)
    for (const std::string& page : pages(s)) {
      const Detected found = detect(page, DocumentFormat::html);
      EXPECT_EQ(found.language, s.language) << page;
      EXPECT_GE(found.confidence, 80) << page;
    }
}

TEST(DetectLanguage, AmongThoseOfTheModels) {
  const std::vector<std::string> known{"en", "de", "fr"};
  EXPECT_EQ(detect("Das Wetter ist heute sehr schön, und wir gehen spazieren.", DocumentFormat::text, known).language, "de");
  // Another language, nothing, or no text at all: the first one, without confidence.
  for (const std::string unknown : {"今日はとても天気がいいです", "", "12345", "\xff\xfe\xff"}) {
    EXPECT_EQ(detect_languages(unknown, known).front().language, "en") << unknown;
    EXPECT_EQ(detect_languages(unknown, known).front().confidence, 0) << unknown;
  }
  std::string cut = std::string(65535, 'a') + "ä";  // the detector looks at the beginning; not at half a letter
  detect_languages(cut, known);
  EXPECT_EQ(detect_languages("Dies ist ein deutscher Satz über das Wetter.", std::vector<std::string>{"en", "de-AT"}).front().language,
            "de-AT");
  EXPECT_TRUE(detect_languages("x", {}).empty());
  // What the detector refuses to look at.
  EXPECT_EQ(detect_languages(std::string("a\0b", 3), std::vector<std::string>{"en", "de"}).front().confidence, 0);
}

// A few words look like another language, which no model has; then those of the models count more, and their confidence is not 0.
TEST(DetectLanguage, AFewWordsToo) {
  const std::vector<std::string> known{"en", "de"};
  for (const auto& [text, language] : {std::pair("Ein Mann", "de"),
                                       {"Ein kleiner Hund", "de"},
                                       {"Hallo", "de"},
                                       {"Guten Morgen", "de"},
                                       {"Danke", "de"},
                                       {"Eine Frau", "de"},
                                       {"Two dogs", "en"},
                                       {"Hello", "en"},
                                       {"Thank you", "en"},
                                       {"a small house", "en"},
                                       {"A MAN IS RIDING A BIKE", "en"},
                                       {"EIN MANN FÄHRT RAD", "de"}}) {
    const Detected found = detect_languages(text, known).front();
    EXPECT_EQ(found.language, language) << text;
    EXPECT_GT(found.confidence, 50) << text;
  }
}

// Real sentences, whole and their beginnings. In shares of a thousand, with some room below what was found.
TEST(DetectLanguage, CaptionsAndTheirBeginnings) {
  const char* data = std::getenv("STARLING_DATA");
  const std::filesystem::path folder = data ? data : std::filesystem::path(STARLING_SOURCE_DIR) / "../shared/data";
  const std::vector<std::string> known{"de", "en"};
  for (const std::string language : {"en", "de"}) {
    std::ifstream in(folder / ("multi30k/test2016." + language));
    if (!in) GTEST_SKIP() << "without " << folder;
    std::map<size_t, int> right;  // by words
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines)
      for (const size_t words : {3, 1000}) {
        size_t end = 0;
        for (size_t i = 0; i < words && end != std::string::npos; ++i) end = line.find(' ', end + 1);
        const Detected found = detect_languages(line.substr(0, end), known).front();
        right[words] += found.language == language && found.confidence > 0;
      }
    ASSERT_EQ(lines, 1000);
    for (const auto& [words, count] : right) fmt::print("{}, {} words: {} of {}\n", language, words, count, lines);
    EXPECT_GE(right[3], 950) << language;
    EXPECT_GE(right[1000], 995) << language;
  }
}

TEST(DetectLanguage, ScriptsOfChinese) {
  const std::string simple = "一群人站在一座房子前面。今天的天气非常好，我们去散步。",
                    traditional = "一群人站在一座房子前面。今天的天氣非常好，我們去散步。";
  const std::vector<std::string> both{"zh-Hans", "zh-Hant", "en"}, other{"zh-Hant", "zh", "en"}, one{"en", "zh"};
  EXPECT_EQ(detect_languages(simple, both).front().language, "zh-Hans");
  EXPECT_EQ(detect_languages(traditional, both).front().language, "zh-Hant");
  EXPECT_EQ(detect_languages(simple, other).front().language, "zh");
  EXPECT_EQ(detect_languages(traditional, other).front().language, "zh-Hant");
  EXPECT_EQ(detect_languages(traditional, one).front().language, "zh");  // nearer than English
}

// Codes that the detector has otherwise.
TEST(DetectLanguage, CodesThatHaveChanged) {
  const std::vector<std::string> known{"en", "he", "nb", "fil"};
  EXPECT_EQ(detect_languages("קבוצת אנשים עומדת מול בית.", known).front().language, "he");
  EXPECT_EQ(detect_languages("En gruppe mennesker står foran et hus, og været er veldig fint i dag.", known).front().language, "nb");
  EXPECT_EQ(detect_languages("Isang grupo ng mga tao ang nakatayo sa harap ng isang bahay.", known).front().language, "fil");
}

}  // namespace
}  // namespace starling
