// LibreTranslate's documented examples, and the requests as its clients send them, field by field; without sockets.
#include "serve/libretranslate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using testing::ElementsAre;

HttpRequest json_request(const std::string& body) {
  return {"POST", "/translate", "127.0.0.1", {{"content-type", "application/json"}}, {}, body};
}
HttpRequest form_request(NamedValues fields) {
  return {"POST", "/translate", "127.0.0.1", {{"content-type", "application/x-www-form-urlencoded"}}, std::move(fields), ""};
}
std::string refusal(const HttpRequest& request, const LibreTranslateLimits& limits = {}) {
  try {
    parse_translate(request, limits);
  } catch (const ApiError& e) {
    return fmt::format("{} {}", e.status, e.what());
  }
  return "accepted";
}

TEST(LibreTranslate, ReadsTheDocumentedExamples) {
  const TextQuery hello = parse_translate(json_request(R"({"q": "Hello!", "source": "en", "target": "es"})"), {});
  EXPECT_THAT(hello.texts, ElementsAre("Hello!"));
  EXPECT_FALSE(hello.list);
  EXPECT_EQ(hello.source, "en");
  EXPECT_EQ(hello.target, "es");
  EXPECT_EQ(hello.format, DocumentFormat::text);
  EXPECT_FALSE(hello.alternatives_asked);
  const TextQuery detect = parse_translate(json_request(R"({"q":"Ciao!","source":"auto","target":"en"})"), {});
  EXPECT_EQ(detect.source, "auto");
  const TextQuery html =
      parse_translate(json_request(R"({"q":"<p class=\"green\">Hello!</p>","source":"en","target":"es","format":"html"})"), {});
  EXPECT_EQ(html.format, DocumentFormat::html);
  EXPECT_THAT(html.texts, ElementsAre("<p class=\"green\">Hello!</p>"));
  const TextQuery more =
      parse_translate(json_request(R"({"q":"Hello","source":"en","target":"it","format":"text","alternatives":3,"api_key":"k"})"), {});
  EXPECT_EQ(more.alternatives, 3);
  EXPECT_TRUE(more.alternatives_asked);
  EXPECT_EQ(more.key, "k");
}

TEST(LibreTranslate, ReadsMastodonsRequest) {
  // Always HTML; the texts of a post (content, warnings, options of a poll) as a list.
  const TextQuery q = parse_translate(
      json_request(
          R"({"q":["<p>Guten Tag, <a href=\"https://example.social/@a\" class=\"u-url mention\">@<span>a</span></a></p>","Warnung",""],)"
          R"("source":"de","target":"en","format":"html","api_key":null})"),
      {});
  EXPECT_EQ(q.texts.size(), 3u);
  EXPECT_TRUE(q.list);
  EXPECT_EQ(q.format, DocumentFormat::html);
  EXPECT_EQ(q.key, "");
  // A post whose language nobody told.
  EXPECT_EQ(parse_translate(json_request(R"({"q":["<p>x</p>"],"source":"auto","target":"en","format":"html","api_key":""})"), {}).source,
            "auto");
}

TEST(LibreTranslate, ReadsWeblatesRequests) {
  const TextQuery batch =
      parse_translate(json_request(R"({"api_key":"secret","q":["Hello, world!","Bye"],"source":"en","target":"de"})"), {});
  EXPECT_THAT(batch.texts, ElementsAre("Hello, world!", "Bye"));
  EXPECT_EQ(batch.key, "secret");
}

TEST(LibreTranslate, ReadsOpenWebUisRequest) {
  // Its filter sends numbers and empty keys as they are.
  const TextQuery q = parse_translate(
      json_request(R"({"q":"What is this?","source":"auto","target":"de","format":"text","alternatives":0,"api_key":""})"), {});
  EXPECT_FALSE(q.alternatives_asked);
  EXPECT_EQ(q.target, "de");
}

TEST(LibreTranslate, ReadsForms) {
  const TextQuery q = parse_translate(
      form_request({{"q", "Hello"}, {"q", "ignored"}, {"source", "en"}, {"target", "de"}, {"alternatives", "2"}, {"alignment", "true"}}),
      {});
  EXPECT_THAT(q.texts, ElementsAre("Hello"));
  EXPECT_EQ(q.alternatives, 2);
  EXPECT_TRUE(q.alignment);
  // Without a content type, as `curl -d` of old scripts with their own header, JSON is recognised.
  EXPECT_EQ(parse_translate({"POST", "/translate", "", {}, {}, R"({"q":"x","source":"en","target":"de"})"}, {}).texts.at(0), "x");
}

TEST(LibreTranslate, TakesCodesInOtherSpellings) {
  for (const char* code : {"pt_BR", "pb", "zt", "zh-Hant-TW", "EN"}) {
    EXPECT_EQ(parse_translate(form_request({{"q", "x"}, {"source", code}, {"target", code}}), {}).source, code);
  }
  for (const char* code : {"e", "english", "en_", "../en"})
    EXPECT_EQ(refusal(form_request({{"q", "x"}, {"source", code}, {"target", "en"}})), fmt::format("400 {} is not supported", code));
}

TEST(LibreTranslate, RefusesWhatIsMissingOrWrong) {
  EXPECT_EQ(refusal(json_request("{}")), "400 Invalid request: missing q parameter");
  EXPECT_EQ(refusal(json_request(R"({"q":""})")), "400 Invalid request: missing q parameter");
  EXPECT_EQ(refusal(json_request(R"({"q":[]})")), "400 Invalid request: missing q parameter");
  EXPECT_EQ(refusal(json_request(R"({"q":"a","target":"de"})")), "400 Invalid request: missing source parameter");
  EXPECT_EQ(refusal(form_request({{"q", "a"}, {"source", "en"}})), "400 Invalid request: missing target parameter");
  const std::string start = R"({"q":"a","source":"en","target":"de",)";
  EXPECT_EQ(refusal(json_request(start + R"("format":"pdf"})")), "400 pdf format is not supported");
  EXPECT_EQ(refusal(json_request(start + R"("alternatives":10000})")),
            "400 Invalid request: alternatives is 10000, but must be between 0 and 10");
  EXPECT_EQ(refusal(json_request(start + R"("alternatives":-1})")),
            "400 Invalid request: alternatives is -1, but must be between 0 and 10");
  EXPECT_EQ(refusal(json_request(start + R"("alternatives":18446744073709551615})")),
            "400 Invalid request: alternatives is not a whole number");
  EXPECT_EQ(refusal(json_request(start + R"("alternatives":"many"})")), "400 Invalid request: alternatives is not a whole number");
  EXPECT_EQ(refusal(json_request(R"({"q":5})")), "400 Invalid request: q is not a string or a list of strings");
  EXPECT_EQ(refusal(json_request(R"({"q":["a",null],"source":"en","target":"de"})")),
            "400 Invalid request: q is not a string or a list of strings");
  EXPECT_EQ(refusal(json_request(R"({"q":"a","source":["en"],"target":"de"})")), "400 Invalid request: source is not a string");
  EXPECT_EQ(refusal(form_request({{"q", "a\xff"}, {"source", "en"}, {"target", "de"}})),
            "400 Invalid request: q is not valid UTF-8 at byte 1; send text in UTF-8");
  EXPECT_EQ(refusal(json_request(R"({"q":"a dog\u0000","source":"en","target":"de"})")),
            "400 Invalid request: q has a NUL character at byte 5; leave it out");
  for (const std::string broken :
       {"", "{", "[]", "null", "\"q\"", "{\"q\":\"\xff\"}", "{\"q\":\"a\",\"q\":\"b\"}", "{\"q\":[[[[[[[[[[]]]]]]]]]]}"})
    EXPECT_THAT(refusal(json_request(broken)), testing::StartsWith("400 Invalid JSON format: the request's body: ")) << broken;
  EXPECT_EQ(refusal(json_request(R"({"q":["äö","ü"],"source":"en","target":"de"})"), {.characters = 2}),
            "400 Invalid request: request (3) exceeds text limit (2)");
  EXPECT_EQ(refusal(json_request(R"({"q":["äö","ü"],"source":"en","target":"de"})"), {.characters = 3}), "accepted");
}

TEST(LibreTranslate, AnswersAsDocumented) {
  TextQuery q{.texts = {"Hello"}, .source = "en", .target = "de"};
  const std::vector<TranslatedText> one{{.text = "Hallo", .alternatives = {"Guten Tag"}, .detected = Detected{"en", 90}}};
  EXPECT_EQ(translate_answer(q, one).body, R"({"translatedText":"Hallo"})");
  q.alternatives_asked = true;
  EXPECT_EQ(translate_answer(q, one).body, R"({"translatedText":"Hallo","alternatives":["Guten Tag"]})");
  q.alternatives_asked = false, q.source = "auto";
  EXPECT_EQ(translate_answer(q, one).body, R"({"translatedText":"Hallo","detectedLanguage":{"confidence":90.0,"language":"en"}})");
  q.list = true;
  EXPECT_EQ(translate_answer(q, one).body, R"({"translatedText":["Hallo"],"detectedLanguage":[{"confidence":90.0,"language":"en"}]})");
  q.source = "en", q.alternatives_asked = true;
  EXPECT_EQ(translate_answer(q, one).body, R"({"translatedText":["Hallo"],"alternatives":[["Guten Tag"]]})");
  TextQuery aligned{.texts = {"a b"}, .source = "en", .target = "de", .alignment = true};
  const std::vector<TranslatedText> words{{.text = "x yy", .alignment = {{{0, 1}, {2, 4}}, {{2, 3}, {0, 1}}}}};
  EXPECT_EQ(translate_answer(aligned, words).body, R"({"translatedText":"x yy","alignment":[[[0,1],[2,4]],[[2,3],[0,1]]]})");
  // Halves of characters that a model wrote do not break the answer.
  const std::vector<TranslatedText> broken{{.text = "a\xc3"}};
  EXPECT_EQ(translate_answer({.texts = {"x"}, .source = "en", .target = "de"}, broken).body, "{\"translatedText\":\"a\xEF\xBF\xBD\"}");
}

TEST(LibreTranslate, TellsLanguagesAndSettings) {
  const std::vector<Direction> models{{"en", "de"}, {"de", "en"}, {"en", "fr"}};
  EXPECT_EQ(languages_answer(models).body,
            R"([{"code":"en","name":"English","targets":["de","fr","en"]},{"code":"de","name":"German","targets":["en","de"]},)"
            R"({"code":"fr","name":"French","targets":["fr"]}])");
  EXPECT_EQ(settings_answer(models, {.characters = 500, .keys = true}, {".txt", ".docx"}).body,
            R"({"charLimit":500,"frontendTimeout":500,"apiKeys":true,"keyRequired":true,"suggestions":false,"filesTranslation":true,)"
            R"("supportedFilesFormat":[".txt",".docx"],"language":{"source":{"code":"en","name":"English"},)"
            R"("target":{"code":"de","name":"German"}}})");
  EXPECT_THAT(settings_answer(models, {}, {}).body, testing::HasSubstr(R"("filesTranslation":false,"supportedFilesFormat":[])"));
  EXPECT_EQ(detect_answer(std::vector<Detected>{{"en", 83}}).body, R"([{"confidence":83.0,"language":"en"}])");
  EXPECT_EQ(error_answer(400, "why").body, R"({"error":"why"})");
}

TEST(Languages, HaveNames) {
  EXPECT_EQ(language_name("de"), "German");
  EXPECT_EQ(language_name("PT-br"), "Portuguese (Brazil)");
  EXPECT_EQ(language_name("zt"), "Chinese (traditional)");
  EXPECT_EQ(language_name("pt_PT"), "Portuguese");
  EXPECT_EQ(language_name("qya"), "qya");
}

}  // namespace
}  // namespace starling
