// Requests with random damage: the interfaces accept or refuse them with 400, and whatever they accept can be answered.
#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "serve/deepl.h"
#include "serve/libretranslate.h"

namespace starling {
namespace {

constexpr int kRounds = 20000;

std::string damaged(std::string text, std::mt19937_64& random) {
  static const std::string kPieces[] = {
      "\"", "[", "]", "{", "}", ",", ":", "\\u", "\\", "null", "1e999", "-1", "true", "\xff", "ä", "\xf0\x9f", std::string(1, '\0')};
  for (uint64_t n = 1 + random() % 4; n > 0 && !text.empty(); --n) {
    const size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 5);
        break;
      case 2:
        text.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 20));
    }
  }
  return text;
}

// A damaged JSON body, or damaged form fields.
HttpRequest request_of(const std::string& json, const NamedValues& fields, std::mt19937_64& random) {
  if (random() % 2) return {"POST", "/", "", {{"content-type", "application/json"}}, {}, damaged(json, random)};
  HttpRequest request{"POST", "/", "", {{"content-type", "application/x-www-form-urlencoded"}}, fields, ""};
  auto& [name, value] = request.fields[random() % fields.size()];
  (random() % 4 ? value : name) = damaged(value, random);
  return request;
}

template <class Parse, class Answer>
void expect_answers(const std::string& json, const NamedValues& fields, Parse parse, Answer answer) {
  std::mt19937_64 random(18);
  int accepted = 0, refused = 0;
  for (int i = 0; i < kRounds; ++i) {
    const HttpRequest request = request_of(json, fields, random);
    try {
      const TextQuery query = parse(request);
      ASSERT_FALSE(query.texts.empty());
      for (const std::string& text : query.texts) ASSERT_FALSE(invalid_utf8_offset(text)) << request.body;
      const std::vector<TranslatedText> texts(query.texts.size(), TranslatedText{.text = query.texts.front()});
      ASSERT_TRUE(nlohmann::json::accept(answer(query, texts).body));
      ++accepted;
    } catch (const ApiError& e) {
      ASSERT_EQ(e.status, 400) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(accepted, kRounds / 20);
  EXPECT_GT(refused, kRounds / 20);
}

TEST(ApiFuzz, LibreTranslate) {
  expect_answers(
      R"({"q":["Hello, world","zwei"],"source":"en","target":"de","format":"html","alternatives":2,"alignment":true,"api_key":"k"})",
      {{"q", "Hello"}, {"source", "auto"}, {"target", "de"}, {"format", "text"}, {"alternatives", "2"}, {"alignment", "1"}},
      [](const HttpRequest& r) { return parse_translate(r, {}); },
      [](const TextQuery& q, std::span<const TranslatedText> t) { return translate_answer(q, t); });
}

TEST(ApiFuzz, DeepL) {
  const std::vector<Direction> models{{"en", "de"}, {"de", "en"}};
  expect_answers(
      R"({"text":["Hello","zwei"],"source_lang":"EN","target_lang":"DE","tag_handling":"html","ignore_tags":["x"],"split_sentences":"0",)"
      R"("formality":"default","show_billed_characters":true})",
      {{"text", "Hello"},
       {"text", "zwei"},
       {"source_lang", "EN-US"},
       {"target_lang", "DE"},
       {"tag_handling", "xml"},
       {"splitting_tags", "a,b"},
       {"outline_detection", "0"}},
      [&](const HttpRequest& r) { return parse_deepl(r, models); },
      [](const TextQuery& q, std::span<const TranslatedText> t) { return deepl_answer(q, t); });
}

}  // namespace
}  // namespace starling
