#include "serve/deepl.h"

#include <algorithm>

#include "base/push_once.h"
#include "config/suggestion.h"
#include "serve/directions.h"
#include "text/unicode.h"

namespace starling {
namespace {

using Json = nlohmann::ordered_json;

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return text;
}

ApiError not_supported(const char* parameter, const std::string& value) {
  return {400, fmt::format("Value for '{}' not supported: {}", parameter, value)};
}

// Returns a parameter that must be one of `known`; "" if it is missing.
std::string choice(const RequestValues& values, const char* parameter, std::initializer_list<std::string_view> known) {
  const std::string value = values.word(parameter).value_or("");
  if (!value.empty() && std::find(known.begin(), known.end(), value) == known.end()) throw not_supported(parameter, value);
  return value;
}

bool is_sent(const RequestValues& values, const char* parameter) {
  bool list = false;
  const std::vector<std::string> texts = values.texts(parameter, list);
  return std::any_of(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); });
}

// Refuses unknown parameters, because ignoring one might change the meaning of the request.
void require_known_parameters(const RequestValues& values, std::string_view all) {
  std::vector<std::string> known;
  for (const std::string_view name : split_on_space(all)) known.emplace_back(name);
  for (const std::string& name : values.names())
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw ApiError(400, fmt::format("Parameter '{}' is not known{}", name, name.size() < 100 ? did_you_mean(name, known) : ""));
}

constexpr std::string_view kTextParameters =
    "auth_key context custom_instructions enable_beta_languages formality glossary_id ignore_tags model_type non_splitting_tags "
    "outline_detection preserve_formatting show_billed_characters source_lang split_sentences splitting_tags style_id tag_handling "
    "tag_handling_version target_lang text translation_memory_id translation_memory_threshold";
constexpr std::string_view kDocumentParameters =
    "auth_key enable_document_minification file filename formality glossary_id output_format source_lang target_lang";

// Refuses parameters that would change the translation and that the models here do not support. Others are accepted without effect: a
// context is not translated and only may influence the translation, a preferred formality is optional, there is only one model, and white
// space is always kept.
void refuse_what_no_model_can(const RequestValues& values) {
  for (const char* name : {"style_id", "custom_instructions", "translation_memory_id"})
    if (is_sent(values, name)) throw ApiError(400, fmt::format("Parameter '{}' is not supported by this server; leave it out", name));
  const std::string formality = choice(values, "formality", {"default", "more", "less", "prefer_more", "prefer_less"});
  if (formality == "more" || formality == "less")
    throw ApiError(400, fmt::format("'formality' {0} is not supported by any model here; leave it out or send prefer_{0}", formality));
  choice(values, "model_type", {"quality_optimized", "prefer_quality_optimized", "latency_optimized"});
  choice(values, "tag_handling_version", {"v1", "v2"});
  values.text("context");
  for (const char* name : {"preserve_formatting", "enable_beta_languages"}) values.flag(name);
}

// Returns names of elements, sent as a list or separated by commas.
TagRules::Names element_names(const RequestValues& values, const char* parameter, bool small) {
  TagRules::Names names;
  bool list = false;
  for (std::string text : values.texts(parameter, list)) {
    for (char& c : text) c = c == ',' ? ' ' : small && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    for (const std::string_view name : split_on_space(std::string_view(text))) names.emplace(name);
  }
  return names;
}

void read_document_options(const RequestValues& values, TextQuery& query) {
  const std::string tags = choice(values, "tag_handling", {"html", "xml"}),
                    split = choice(values, "split_sentences", {"0", "1", "nonewlines"});
  query.format = tags.empty() ? DocumentFormat::text : tags == "xml" ? DocumentFormat::xml : DocumentFormat::html;
  DocumentOptions& options = query.document;
  options.ends = split.empty()  ? SentenceEnds::usual
                 : split == "0" ? SentenceEnds::none
                 : split == "1" ? SentenceEnds::marks_and_lines
                                : SentenceEnds::marks;
  const bool html = tags == "html";
  for (const auto& [parameter, names] : {std::pair("ignore_tags", &options.tags.ignored),
                                         {"splitting_tags", &options.tags.separating},
                                         {"non_splitting_tags", &options.tags.within}}) {
    *names = element_names(values, parameter, html);
    if (tags.empty() && !names->empty())
      throw ApiError(400, fmt::format("'{}' needs 'tag_handling'; send xml or html with it, or leave it out", parameter));
  }
  if (values.has("outline_detection")) options.tags.outline = values.flag("outline_detection");
  if (!options.tags.outline && tags != "xml") throw ApiError(400, "'outline_detection' needs 'tag_handling' xml; leave it out");
}

}  // namespace

std::string specified(const RequestValues& values, const char* parameter) {
  auto value = values.text(parameter);
  if (!value) throw ApiError(400, fmt::format("Value for '{}' not specified", parameter));
  return *std::move(value);
}

std::string known_language(const std::string& asked, std::span<const Direction> models, const char* parameter) {
  const std::vector<std::string> codes = nearest_languages(languages_of(models), asked);
  if (codes.empty()) throw ApiError(400, fmt::format("Value for '{}' not supported: {}", parameter, asked));
  return codes.size() == 1 ? codes.front() : asked;
}

TextQuery parse_deepl(const HttpRequest& request, std::span<const Direction> models) {
  const RequestValues values(request);
  require_known_parameters(values, kTextParameters);
  TextQuery query;
  query.key = values.text("auth_key").value_or("");
  query.texts = values.texts("text", query.list);
  query.list = true;
  if (query.texts.empty()) throw ApiError(400, "Parameter 'text' not specified");
  const std::string target = specified(values, "target_lang");
  const auto source = values.text("source_lang");
  query.source = source ? known_language(*source, models, "source_lang") : "auto";
  query.target = known_language(target, models, "target_lang");
  read_document_options(values, query);
  refuse_what_no_model_can(values);
  query.glossary_id = values.text("glossary_id").value_or("");
  query.billed = values.flag("show_billed_characters");
  return query;
}

HttpResponse deepl_answer(const TextQuery& query, std::span<const TranslatedText> texts) {
  Json all = Json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    const TranslatedText& t = texts[i];
    Json translation{{"detected_source_language", upper(t.detected ? t.detected->language : query.source)}, {"text", t.text}};
    if (query.billed) translation["billed_characters"] = characters_of(query.texts[i]);
    all.push_back(std::move(translation));
  }
  return json_response(200, {{"translations", all}});
}

HttpResponse deepl_languages(const RequestValues& values, std::span<const Direction> models) {
  const std::string type = values.text("type").value_or("source");
  if (type != "source" && type != "target") throw ApiError(400, fmt::format("Value for 'type' not supported: {}", type));
  std::vector<std::string> codes;
  for (const Direction& d : models) {
    const std::string& code = type == "source" ? d.source : d.target;
    push_once(codes, code);
  }
  Json all = Json::array();
  for (const std::string& code : codes) {
    Json language{{"language", upper(code)}, {"name", language_name(code)}};
    if (type == "target") language["supports_formality"] = false;
    all.push_back(language);
  }
  return json_response(200, all);
}

HttpResponse deepl_usage(int64_t characters) {
  return json_response(200, {{"character_count", characters}, {"character_limit", 1'000'000'000'000}});
}

HttpResponse deepl_glossary_pairs(std::span<const Direction> models) {
  Json all = Json::array();
  for (const Direction& d : models) all.push_back({{"source_lang", d.source}, {"target_lang", d.target}});
  return json_response(200, {{"supported_languages", all}});
}

void refuse_document_options(const RequestValues& values) {
  require_known_parameters(values, kDocumentParameters);
  refuse_what_no_model_can(values);
}

HttpResponse deepl_error(int status, const std::string& why) { return json_response(status, {{"message", why}}); }

}  // namespace starling
