// DeepL's options: what they become, and which are refused by name; without sockets.
#include "serve/deepl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace starling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<Direction> kModels{{"en", "de"}, {"pt-BR", "de"}};

HttpRequest deepl_request(const std::string& more) {
  return {"POST", "/v2/translate", "", {{"content-type", "application/json"}}, {}, R"({"text":["x"],"target_lang":"DE")" + more + "}"};
}
TextQuery parsed(const std::string& more) { return parse_deepl(deepl_request(more), kModels); }
std::string refusal(const std::string& more) {
  try {
    parsed(more);
  } catch (const ApiError& e) {
    return fmt::format("{} {}", e.status, e.what());
  }
  return "accepted";
}

TEST(DeepL, ReadsWhereSentencesEnd) {
  EXPECT_EQ(parsed("").document.ends, SentenceEnds::usual);
  EXPECT_EQ(parsed(R"(,"split_sentences":"0")").document.ends, SentenceEnds::none);
  EXPECT_EQ(parsed(R"(,"split_sentences":0)").document.ends, SentenceEnds::none);
  EXPECT_EQ(parsed(R"(,"split_sentences":"1")").document.ends, SentenceEnds::marks_and_lines);
  EXPECT_EQ(parsed(R"(,"split_sentences":"nonewlines")").document.ends, SentenceEnds::marks);
  EXPECT_EQ(refusal(R"(,"split_sentences":"2")"), "400 Value for 'split_sentences' not supported: 2");
}

TEST(DeepL, ReadsNamesOfElements) {
  const TextQuery xml =
      parsed(R"(,"tag_handling":"xml","ignore_tags":["x","Y z"],"splitting_tags":"par, title","non_splitting_tags":["b"])");
  EXPECT_EQ(xml.format, DocumentFormat::xml);
  EXPECT_THAT(xml.document.tags.ignored, ElementsAre("Y", "x", "z"));
  EXPECT_THAT(xml.document.tags.separating, ElementsAre("par", "title"));
  EXPECT_THAT(xml.document.tags.within, ElementsAre("b"));
  EXPECT_TRUE(xml.document.tags.outline);
  EXPECT_FALSE(parsed(R"(,"tag_handling":"xml","outline_detection":false)").document.tags.outline);
  EXPECT_FALSE(parsed(R"(,"tag_handling":"xml","outline_detection":0)").document.tags.outline);
  const TextQuery html = parsed(R"(,"tag_handling":"html","ignore_tags":["EM"])");
  EXPECT_EQ(html.format, DocumentFormat::html);
  EXPECT_THAT(html.document.tags.ignored, ElementsAre("em"));
  // Forms repeat the field, or put commas.
  const HttpRequest form{"POST",
                         "/v2/translate",
                         "",
                         {{"content-type", "application/x-www-form-urlencoded"}},
                         {{"text", "x"}, {"target_lang", "DE"}, {"tag_handling", "xml"}, {"ignore_tags", "a,b"}, {"ignore_tags", "c"}},
                         ""};
  EXPECT_THAT(parse_deepl(form, kModels).document.tags.ignored, ElementsAre("a", "b", "c"));
  EXPECT_EQ(refusal(R"(,"ignore_tags":["x"])"), "400 'ignore_tags' needs 'tag_handling'; send xml or html with it, or leave it out");
  EXPECT_EQ(refusal(R"(,"ignore_tags":[],"splitting_tags":"","non_splitting_tags":null)"), "accepted");
  EXPECT_EQ(refusal(R"(,"tag_handling":"html","outline_detection":false)"),
            "400 'outline_detection' needs 'tag_handling' xml; leave it out");
}

TEST(DeepL, RefusesByNameWhatNoModelCan) {
  for (const char* name : {"style_id", "translation_memory_id"}) {
    EXPECT_EQ(refusal(fmt::format(R"(,"{}":"aaaa-bbbb")", name)),
              fmt::format("400 Parameter '{}' is not supported by this server; leave it out", name));
    EXPECT_EQ(refusal(fmt::format(R"(,"{}":"")", name)), "accepted");
    EXPECT_EQ(refusal(fmt::format(R"(,"{}":null)", name)), "accepted");
  }
  EXPECT_EQ(refusal(R"(,"custom_instructions":["be kind"])"),
            "400 Parameter 'custom_instructions' is not supported by this server; leave it out");
  for (const std::string formality : {"more", "less"})
    EXPECT_EQ(refusal(R"(,"formality":")" + formality + "\""),
              "400 'formality' " + formality + " is not supported by any model here; leave it out or send prefer_" + formality);
  for (const std::string formality : {"default", "prefer_more", "prefer_less"})
    EXPECT_EQ(refusal(R"(,"formality":")" + formality + "\""), "accepted");
  EXPECT_EQ(refusal(R"(,"formality":"rude")"), "400 Value for 'formality' not supported: rude");
  EXPECT_EQ(refusal(R"(,"model_type":"best")"), "400 Value for 'model_type' not supported: best");
  EXPECT_EQ(refusal(R"(,"show_billed_characters":"perhaps")"), "400 Invalid request: show_billed_characters is not true or false");
}

TEST(DeepL, TakesWhatChangesNothingAndRefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(R"(,"context":"A story.","preserve_formatting":true,"model_type":"quality_optimized","tag_handling_version":"v2",)"
                    R"("enable_beta_languages":false,"show_billed_characters":true,"auth_key":"k","source_lang":"EN")"),
            "accepted");
  EXPECT_THAT(parsed(R"(,"context":"A story.")").texts, ElementsAre("x"));
  EXPECT_TRUE(parsed(R"(,"show_billed_characters":1)").billed);
  EXPECT_EQ(refusal(R"(,"ignore_tag":["x"])"), "400 Parameter 'ignore_tag' is not known; did you mean 'ignore_tags'?");
  EXPECT_EQ(refusal(R"(,"zzz":1)"), "400 Parameter 'zzz' is not known");
}

TEST(DeepL, FindsLanguagesOfTheModels) {
  EXPECT_EQ(parsed(R"(,"source_lang":"EN-US")").source, "en");
  EXPECT_EQ(parsed(R"(,"source_lang":"PT")").source, "pt-BR");
  EXPECT_EQ(parsed(R"(,"source_lang":"PT-PT")").source, "pt-BR");
  EXPECT_EQ(parsed("").source, "auto");
  EXPECT_EQ(refusal(R"(,"source_lang":"FR")"), "400 Value for 'source_lang' not supported: FR");
  EXPECT_EQ(deepl_glossary_pairs(std::span(kModels).first(1)).body, R"({"supported_languages":[{"source_lang":"en","target_lang":"de"}]})");
}

}  // namespace
}  // namespace starling
