#include "serve/libretranslate.h"

#include <algorithm>

#include "serve/glossaries.h"
#include "text/language_match.h"
#include "text/languages.h"

namespace starling {
namespace {

using Json = nlohmann::ordered_json;

Json detected_json(const Detected& d) { return {{"confidence", d.confidence}, {"language", d.language}}; }

Json alignment_json(const std::vector<AlignedSpans>& spans) {
  Json all = Json::array();
  for (const AlignedSpans& s : spans) all.push_back({{s.source.begin, s.source.end}, {s.target.begin, s.target.end}});
  return all;
}

Json confidence_json(const TextConfidence& confidence) {
  Json sentences = Json::array();
  for (const TextConfidence::Sentence& s : confidence.sentences) {
    Json words = Json::array();
    for (const auto& [text, value] : s.words) words.push_back({text, value});
    sentences.push_back({{"text", s.text}, {"value", s.value}, {"words", words}});
  }
  return {{"value", confidence.value}, {"sentences", sentences}};
}

Json language_json(const std::string& code) { return {{"code", code}, {"name", language_name(code)}}; }

// Returns a single value or a list, as the client sent its texts.
template <class Field>
Json one_or_list(const TextQuery& query, std::span<const TranslatedText> texts, Field field) {
  if (!query.list) return field(texts.front());
  Json all = Json::array();
  for (const TranslatedText& t : texts) all.push_back(field(t));
  return all;
}

}  // namespace

TextQuery parse_translate(const HttpRequest& request, const LibreTranslateLimits& limits) {
  const RequestValues values(request);
  TextQuery query;
  query.key = values.text("api_key").value_or("");
  query.texts = values.texts("q", query.list);
  // Of a repeated field only the first value counts, as in LibreTranslate.
  if (!query.list && query.texts.size() > 1) query.texts.resize(1);
  if (query.texts.empty() || (!query.list && query.texts.front().empty())) throw ApiError(400, "Invalid request: missing q parameter");
  query.source = values.required("source");
  query.target = values.required("target");
  for (const std::string& code : {query.source, query.target})
    if (code != "auto" && !is_language_code(comparable_language(code))) throw ApiError(400, fmt::format("{} is not supported", code));
  const std::string format = values.text("format").value_or("text");
  if (format != "text" && format != "html") throw ApiError(400, fmt::format("{} format is not supported", format));
  query.format = format == "html" ? DocumentFormat::html : DocumentFormat::text;
  query.alternatives_asked = values.has("alternatives");
  query.alternatives = values.integer("alternatives").value_or(0);
  if (query.alternatives < 0 || query.alternatives > limits.alternatives)
    throw ApiError(
        400, fmt::format("Invalid request: alternatives is {}, but must be between 0 and {}", query.alternatives, limits.alternatives));
  if (query.alternatives == 0) query.alternatives_asked = false;
  query.alignment = values.flag("alignment");
  query.stream = values.flag("stream");
  query.confidence = values.flag("confidence");
  query.glossary = glossary_of(values);
  int64_t characters = 0;
  for (const std::string& text : query.texts) characters += characters_of(text);
  if (limits.characters >= 0 && characters > limits.characters)
    throw ApiError(400, fmt::format("Invalid request: request ({}) exceeds text limit ({})", characters, limits.characters));
  return query;
}

HttpResponse translate_answer(const TextQuery& query, std::span<const TranslatedText> texts) {
  Json json{{"translatedText", one_or_list(query, texts, [](const TranslatedText& t) -> Json { return t.text; })}};
  if (query.alternatives_asked)
    json["alternatives"] = one_or_list(query, texts, [](const TranslatedText& t) -> Json { return t.alternatives; });
  if (query.source == "auto")
    json["detectedLanguage"] =
        one_or_list(query, texts, [](const TranslatedText& t) { return detected_json(t.detected.value_or(Detected{})); });
  if (query.alignment) json["alignment"] = one_or_list(query, texts, [](const TranslatedText& t) { return alignment_json(t.alignment); });
  if (query.confidence)
    json["confidence"] = one_or_list(query, texts, [](const TranslatedText& t) { return confidence_json(t.confidence); });
  return json_response(200, json);
}

std::string parse_detect(const RequestValues& values) { return values.required("q"); }

HttpResponse detect_answer(std::span<const Detected> found) {
  Json all = Json::array();
  for (const Detected& d : found) all.push_back(detected_json(d));
  return json_response(200, all);
}

HttpResponse languages_answer(std::span<const Direction> models) {
  Json all = Json::array();
  for (const std::string& code : languages_of(models)) {
    Json language = language_json(code), targets = Json::array();
    for (const Direction& d : models)
      if (d.source == code) targets.push_back(d.target);
    // Each language is listed as its own target, as in LibreTranslate: text that is in the target language already is returned unchanged.
    if (std::find(targets.begin(), targets.end(), code) == targets.end()) targets.push_back(code);
    language["targets"] = targets;
    all.push_back(language);
  }
  return json_response(200, all);
}

HttpResponse settings_answer(std::span<const Direction> models, const LibreTranslateLimits& limits, const std::vector<std::string>& files) {
  const Direction first = models.empty() ? Direction{} : models.front();
  return json_response(200, {{"charLimit", limits.characters},
                             {"frontendTimeout", 500},
                             {"apiKeys", limits.keys},
                             {"keyRequired", limits.keys},
                             {"suggestions", false},
                             {"filesTranslation", !files.empty()},
                             {"supportedFilesFormat", files},
                             {"language", {{"source", language_json(first.source)}, {"target", language_json(first.target)}}}});
}

HttpResponse error_answer(int status, const std::string& why) { return json_response(status, {{"error", why}}); }

}  // namespace starling
