// What the server translates, and in which dialects it is asked.
#include <atomic>
#include <thread>

#include "serve/utf16.h"
#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST_F(ServiceTest, TranslatesAsTheTranslatorDoesHoweverItIsAsked) {
  start();
  const auto text = expected({"a small house"})[0][0];
  const ClientAnswer json = translate({{"q", "a small house"}});
  EXPECT_EQ(json.status, 200);
  EXPECT_EQ(json.type, "application/json");
  EXPECT_EQ(json.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(json.json(), Json({{"translatedText", text}}));
  EXPECT_EQ(ask(url("/translate"), {.body = "q=a%20small+house&source=en&target=de"}).json(), Json({{"translatedText", text}}));
  EXPECT_EQ(ask(url("/translate"), {.form = {{"q", "a small house"}, {"source", "en"}, {"target", "de"}}}).json(),
            Json({{"translatedText", text}}));
  EXPECT_EQ(ask(url("/translate?q=a%20small%20house&source=en&target=de")).json(), Json({{"translatedText", text}}));
  EXPECT_EQ(ask(url("/translate?source=EN&target=De"), {.body = "q=a small house"}).json(), Json({{"translatedText", text}}));
}

TEST_F(ServiceTest, TranslatesListsWithAlternatives) {
  start();
  const std::vector<std::string> lines{"a small house", "the dog", "we go now"};
  const auto best = expected(lines, 3);
  const Json answer = translate({{"q", lines}, {"alternatives", 2}}).json();
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(answer["translatedText"][i], best[i][0]);
    EXPECT_EQ(answer["alternatives"][i], (std::vector<std::string>{best[i][1], best[i][2]}));
  }
}

TEST_F(ServiceTest, DetectsTheLanguageOfEachText) {
  start();
  const std::string german = "Das Wetter ist heute sehr schön und wir gehen spazieren.",
                    english = "The weather is very nice today, we go for a walk.";
  const Json answer = translate({{"q", {german, german}}, {"source", "auto"}, {"target", "en"}}).json();
  EXPECT_EQ(answer["detectedLanguage"][1]["language"], "de");
  EXPECT_GT(answer["detectedLanguage"][1]["confidence"], 80);
  EXPECT_EQ(ask(url("/detect"), {.body = "q=" + english}).json()[0]["language"], "en");
  EXPECT_EQ(ask_json(url("/detect"), {{"q", german}}).json()[0]["language"], "de");
}

TEST_F(ServiceTest, TextInTheTargetLanguageComesBackAsItIs) {
  start();
  const std::string german = "Das Wetter ist heute sehr schön,\n und wir gehen  spazieren.",
                    english = "<p>The weather is very nice today &amp; we go for a <b>walk</b>.</p>";
  for (const char* target : {"en", "EN", "en-US", "en_GB"}) {
    const Json one = translate({{"q", english}, {"source", "auto"}, {"target", target}, {"format", "html"}, {"alternatives", 1}}).json();
    EXPECT_EQ(one["translatedText"], english) << target;
    EXPECT_EQ(one["alternatives"], Json::array());
    EXPECT_EQ(one["detectedLanguage"]["language"], "en");
    EXPECT_GT(one["detectedLanguage"]["confidence"], 80);
  }
  // Only those texts of a list that are.
  const Json list = translate({{"q", {german, "The weather is very nice today, we go for a walk.", "-- 😀"}}, {"source", "auto"}}).json();
  EXPECT_EQ(list["translatedText"][0], german);
  EXPECT_EQ(list["detectedLanguage"][0]["language"], "de");
  EXPECT_EQ(list["translatedText"][1], expected({"The weather is very nice today, we go for a walk."})[0][0]);
  EXPECT_EQ(list["detectedLanguage"][1]["language"], "en");
  EXPECT_EQ(list["translatedText"][2], "-- 😀");
  EXPECT_EQ(list["detectedLanguage"][2]["confidence"], 0);
  const Json same = translate({{"q", german}, {"source", "de_AT"}, {"target", "de"}, {"alignment", true}}).json();
  EXPECT_EQ(same["translatedText"], german);
  EXPECT_FALSE(same.contains("detectedLanguage"));
  EXPECT_EQ(ask_json(url("/v2/translate"), {{"text", {german}}, {"target_lang", "DE"}}).json()["translations"][0],
            Json({{"detected_source_language", "DE"}, {"text", german}}));
}

TEST_F(ServiceTest, CodesMayBeSpelledInOtherWays) {
  start();
  const auto text = expected({"a small house"})[0][0];
  for (const auto& [source, target] : {std::pair("en-US", "de-DE"), {"EN_gb", "de_at"}, {"en", "DE"}})
    EXPECT_EQ(translate({{"q", "a small house"}, {"source", source}, {"target", target}}).json()["translatedText"], text) << source;
}

// Forms of French that were taken for English; here as German, which the server has.
TEST_F(ServiceTest, MarkupIsNotTakenForEnglish) {
  start();
  const std::string text = "Eine Gruppe von Menschen steht vor einem Haus.",
                    address = "https://www.example.org/the-best-houses-for-everyone-who-wants-to-live-there?utm_source=newsletter";
  for (const std::string& html :
       {"<div class=\"post-content wp-block-group is-layout-constrained\"><p class=\"has-text-align-center\">Eine Gruppe von Menschen "
        "steht "
        "vor einem <a href=\"" +
            address + "\" title=\"The best houses for everyone\">Haus</a>.</p></div>",
        "<style>.header .title { display: block; } /* the styles of this page are made for large screens */</style><p>" + text + "</p>",
        text + "<a href=\"" + address + "\">" + address + "</a>"}) {
    const Json answer = translate({{"q", html}, {"source", "auto"}, {"target", "en"}, {"format", "html"}}).json();
    EXPECT_EQ(answer["detectedLanguage"]["language"], "de") << html;
    EXPECT_GT(answer["detectedLanguage"]["confidence"], 80) << html;
    EXPECT_EQ(ask_json(url("/detect"), {{"q", html}}).json()[0]["language"], "de") << html;
  }
  EXPECT_EQ(translate({{"q", text + " " + address}, {"source", "auto"}, {"target", "en"}}).json()["detectedLanguage"]["language"], "de");
}

TEST_F(ServiceTest, TellsWhatItIs) {
  start();
  EXPECT_EQ(ask(url("/health")).json(), Json({{"status", "ok"}}));
  EXPECT_EQ(ask(url("/ready")).status, 200);
  EXPECT_EQ(ask(url("/languages")).json(),
            Json::parse(R"([{"code":"en","name":"English","targets":["de","en"]},{"code":"de","name":"German","targets":["en","de"]}])"));
  EXPECT_EQ(ask(url("/frontend/settings")).json()["language"]["target"]["code"], "de");
  EXPECT_EQ(ask(url("/health"), {.method = "HEAD"}).status, 200);
  const ClientAnswer preflight = ask(url("/translate"), {.method = "OPTIONS", .headers = {"Origin: https://example.org"}});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Methods"), "GET, POST, DELETE, OPTIONS");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "Authorization, Content-Type");
}

TEST_F(ServiceTest, RefusesAsLibreTranslateDoes) {
  start({.job = {.sentences = 3}});
  const auto refused = [&](const ClientAnswer& a) { return std::to_string(a.status) + " " + a.json().value("error", "?"); };
  EXPECT_EQ(refused(translate({{"q", ""}})), "400 Invalid request: missing q parameter");
  EXPECT_EQ(refused(translate({{"q", "x"}, {"target", "zz"}})), "400 zz is not supported");
  EXPECT_EQ(refused(translate({{"q", "x"}, {"source", "pt_BR"}})), "400 pt_BR is not supported");
  EXPECT_EQ(refused(translate({{"q", {"a", "b", "c", "d"}}})), "400 Invalid request: 4 texts exceed the limit of 3; send them in parts");
  EXPECT_THAT(refused(ask(url("/translate"), {.body = "{", .headers = {"Content-Type: application/json"}})),
              HasSubstr("400 Invalid JSON format"));
  EXPECT_EQ(refused(ask(url("/nothing"))), "404 there is nothing at /nothing; translations are at /translate");
  EXPECT_EQ(refused(ask(url("/languages"), {.body = "x=1"})), "405 /languages takes GET");
  EXPECT_EQ(refused(ask(url("/translate"), {.method = "DELETE"})), "405 /translate takes POST or GET");
  EXPECT_EQ(refused(ask(url("/suggest"), {.body = "q=1"})), "403 Suggestions are disabled on this server.");
  const ClientAnswer large = translate({{"q", std::string(300000, 'x')}});
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.json()["error"], "the request is larger than 200000 bytes; send it in parts");
  EXPECT_EQ(metrics_.value("starling_rejected_total", "reason=\"body\""), 1);
}

TEST_F(ServiceTest, KeepsLinesAndBlanks) {
  start();
  const auto t = expected({"a small house", "the dog"});
  EXPECT_EQ(translate({{"q", "a small house\n\n  the dog \n"}}).json()["translatedText"], t[0][0] + "\n\n  " + t[1][0] + " \n");
  EXPECT_EQ(translate({{"q", " \n\n"}}).json()["translatedText"], " \n\n");
}

TEST_F(ServiceTest, KeepsTagsAndPlaceholders) {
  start();
  const std::string post =
      "<p>Hello <a href=\"https://example.social/@u\" class=\"mention\">@<span>user</span></a> a small house<br>the dog</p>";
  const std::string text = translate({{"q", post}, {"format", "html"}}).json()["translatedText"];
  EXPECT_THAT(text, testing::StartsWith("<p>"));
  EXPECT_THAT(text, testing::EndsWith("</p>"));
  for (const char* tag : {"<a href=\"https://example.social/@u\" class=\"mention\">", "<span>", "</span>", "</a>", "<br>"})
    EXPECT_THAT(text, HasSubstr(tag));
  EXPECT_THAT(translate({{"q", "see https://example.org/a?b=c now"}}).json()["translatedText"].get<std::string>(),
              HasSubstr("https://example.org/a?b=c"));
}

TEST_F(ServiceTest, AlignsWordsWhereAsked) {
  start();
  const Json answer = translate({{"q", "ä small house"}, {"alignment", true}}).json();
  const std::string text = answer["translatedText"];
  ASSERT_FALSE(answer["alignment"].empty());
  int64_t end = 0;
  for (const auto& pair : answer["alignment"]) {
    EXPECT_LT(pair[0][0], pair[0][1]);
    EXPECT_LE(pair[0][1], 13);  // characters, not bytes
    EXPECT_GE(pair[1][0], end);
    end = pair[1][1];
  }
  EXPECT_LE(end, static_cast<int64_t>(text.size()));
  EXPECT_FALSE(translate({{"q", "ä small house"}}).json().contains("alignment"));
}

TEST(Utf16Spans, CountAsJavaScriptDoes) {
  // Bytes: a 1, ä 2, 😀 4, b 1; units: 1, 1, 2, 1.
  const AlignedText translation{"xä😀", {{{0, 1}, {0, 1}}, {{3, 7}, {1, 3}}, {{3, 7}, {3, 7}}, {{7, 8}, {7, 7}}}};
  const auto spans = utf16_spans("aä😀b", translation);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_TRUE(spans[0].source == (Range{0, 1}) && spans[0].target == (Range{0, 1}));
  EXPECT_TRUE(spans[1].source == (Range{2, 4}) && spans[1].target == (Range{1, 4}));
  EXPECT_TRUE(spans[2].source == (Range{4, 5}) && spans[2].target == (Range{4, 4}));
}

TEST_F(ServiceTest, EqualTranslationsWhateverElseIsAsked) {
  start({}, {.scheduler = {.cache_bytes = 0}});
  std::vector<std::string> lines;
  for (int i = 0; i < 24; ++i) lines.push_back("the " + std::string(static_cast<size_t>(i % 7) + 1, 'a' + static_cast<char>(i)) + " house");
  const auto want = expected(lines);
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      for (size_t i = 0; i < lines.size(); ++i) {
        const size_t at = (i * 5 + c * 3) % lines.size();
        wrong += translate({{"q", lines[at]}}).json()["translatedText"] != want[at][0];
      }
      wrong += translate({{"q", lines}}).json()["translatedText"][c] != want[c][0];
    });
  for (auto& c : clients) c.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(metrics_.value("starling_sentences_total"), 8 * 24 * 2 + 2);  // and one of each model when it was loaded
}

TEST_F(ServiceTest, AnswersFromMemoryTheSecondTime) {
  start();
  const Json first = translate({{"q", "a small house"}}).json();
  const double before = metrics_.value("starling_sentences_total");
  EXPECT_EQ(translate({{"q", "a small house"}}).json(), first);
  EXPECT_EQ(metrics_.value("starling_sentences_total"), before);
  EXPECT_EQ(metrics_.value("starling_cache_hits_total"), 1);
}

TEST_F(ServiceTest, SpeaksDeepL) {
  start();
  const auto t = expected({"a small house", "the dog"});
  const auto post = [&](const std::string& type, const std::string& body) {
    return ask(url("/v2/translate"), {.body = body, .headers = {"Authorization: DeepL-Auth-Key k", "Content-Type: " + type}});
  };
  const Json two{
      {"translations", {{{"detected_source_language", "EN"}, {"text", t[0][0]}}, {{"detected_source_language", "EN"}, {"text", t[1][0]}}}}};
  EXPECT_EQ(post("application/json", R"({"text":["a small house","the dog"],"source_lang":"EN","target_lang":"DE"})").json(), two);
  EXPECT_EQ(post("application/x-www-form-urlencoded", "text=a+small+house&text=the+dog&source_lang=EN-US&target_lang=DE").json(), two);
  const Json detected =
      post("application/json", R"({"text":["Das Wetter ist heute sehr schön und wir gehen"],"target_lang":"EN-GB"})").json();
  EXPECT_EQ(detected["translations"][0]["detected_source_language"], "DE");
  const ClientAnswer html =
      post("application/json", R"({"text":["<b>the dog</b>"],"source_lang":"EN","target_lang":"DE","tag_handling":"html"})");
  EXPECT_THAT(html.json()["translations"][0]["text"].get<std::string>(), testing::AllOf(HasSubstr("<b>"), HasSubstr("</b>")));
  const auto refused = [&](const std::string& body) {
    const ClientAnswer a = post("application/json", body);
    return std::to_string(a.status) + " " + a.json().value("message", "?");
  };
  EXPECT_EQ(refused(R"({"target_lang":"DE"})"), "400 Parameter 'text' not specified");
  EXPECT_EQ(refused(R"({"text":["x"]})"), "400 Value for 'target_lang' not specified");
  EXPECT_EQ(refused(R"({"text":["x"],"target_lang":"ZZ"})"), "400 Value for 'target_lang' not supported: ZZ");
  EXPECT_EQ(refused(R"({"text":["x"],"target_lang":"DE","tag_handling":"rtf"})"), "400 Value for 'tag_handling' not supported: rtf");
  EXPECT_EQ(ask(url("/v2/translate")).json()["message"], "/v2/translate takes POST");
  EXPECT_EQ(ask(url("/v2/languages?type=target")).json(), Json::parse(R"([{"language":"DE","name":"German","supports_formality":false},)"
                                                                      R"({"language":"EN","name":"English","supports_formality":false}])"));
  EXPECT_EQ(ask(url("/v2/languages")).json()[0], Json::parse(R"({"language":"EN","name":"English"})"));
  EXPECT_EQ(ask(url("/v2/usage")).json()["character_count"], 2 * 20 + 45 + 14);
}

TEST_F(ServiceTest, ObeysDeepLsOptions) {
  start();
  const auto texts = [&](Json body) {
    body["source_lang"] = "EN", body["target_lang"] = "DE";
    return ask_json(url("/v2/translate"), body).json()["translations"];
  };
  const auto t = expected({"a small house", "the dog", "a small house the dog"});
  const std::string lines = "a small house\nthe dog";
  EXPECT_EQ(texts({{"text", {lines}}})[0]["text"], t[0][0] + "\n" + t[1][0]);
  EXPECT_EQ(texts({{"text", {lines}}, {"split_sentences", "1"}})[0]["text"], t[0][0] + "\n" + t[1][0]);
  EXPECT_EQ(texts({{"text", {lines}}, {"split_sentences", "nonewlines"}})[0]["text"], t[2][0]);
  EXPECT_EQ(texts({{"text", {lines}}, {"split_sentences", 0}})[0]["text"], t[2][0]);
  const std::string xml = "<file><code>a small house</code><x>the dog</x></file>";
  EXPECT_EQ(texts({{"text", {xml}}, {"tag_handling", "xml"}})[0]["text"],
            "<file><code>" + t[0][0] + "</code><x>" + t[1][0] + "</x></file>");
  EXPECT_EQ(texts({{"text", {xml}}, {"tag_handling", "xml"}, {"ignore_tags", {"x"}}})[0]["text"],
            "<file><code>" + t[0][0] + "</code><x>the dog</x></file>");
  EXPECT_EQ(texts({{"text", {"<p>a small house</p><div>the dog</div>"}}, {"tag_handling", "html"}, {"ignore_tags", "div,x"}})[0]["text"],
            "<p>" + t[0][0] + "</p><div>the dog</div>");
  EXPECT_EQ(texts({{"text", {"äß dog"}}, {"show_billed_characters", true}})[0]["billed_characters"], 6);
  EXPECT_FALSE(texts({{"text", {"the dog"}}})[0].contains("billed_characters"));
  EXPECT_EQ(ask(url("/v2/glossary-language-pairs")).json()["supported_languages"][0], Json({{"source_lang", "en"}, {"target_lang", "de"}}));
}

TEST_F(ServiceTest, HasAPageAndDescribesItself) {
  start();
  const ClientAnswer page = ask(url("/"));
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_EQ(page.header("Content-Security-Policy"), kPagePolicy);
  std::ifstream in(STARLING_SOURCE_DIR "/src/serve/page/index.html", std::ios::binary);
  EXPECT_TRUE(page.body == std::string(std::istreambuf_iterator<char>(in), {}));
  const Json api = ask(url("/openapi.json")).json();
  EXPECT_EQ(api["openapi"], "3.0.3");
  for (const auto& [path, methods] : api["paths"].items())
    for (const auto& [method, what] : methods.items()) {
      const ClientAnswer a = ask(url(path), method == "post" ? Ask{.body = "nothing=1"} : Ask{.method = method == "get" ? "" : "DELETE"});
      // It is there and takes the method; files and glossaries are not there.
      EXPECT_TRUE(a.status == 200 || a.status == 400 || (a.status == 404 && path.find('}') != std::string::npos))
          << method << " " << path << " " << a.status;
      EXPECT_TRUE(what["responses"].contains(std::to_string(a.status))) << path;
    }
}

}  // namespace
}  // namespace starling
