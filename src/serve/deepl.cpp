#include "serve/deepl.h"

#include <algorithm>

#include "serve/directions.h"

namespace starling {
namespace {

using Json = nlohmann::ordered_json;

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return text;
}

// The code of the models; what was asked for where several are meant, of which one may have a model for both languages.
std::string known(const std::string& asked, std::span<const Direction> models, const char* parameter) {
  const std::vector<std::string> codes = nearest_languages(languages_of(models), asked);
  if (codes.empty()) throw ApiError(400, fmt::format("Value for '{}' not supported: {}", parameter, asked));
  return codes.size() == 1 ? codes.front() : asked;
}

}  // namespace

TextQuery parse_deepl(const HttpRequest& request, std::span<const Direction> models) {
  const RequestValues values(request);
  TextQuery query;
  query.key = values.text("auth_key").value_or("");
  query.texts = values.texts("text", query.list);
  query.list = true;
  if (query.texts.empty()) throw ApiError(400, "Parameter 'text' not specified");
  const auto target = values.text("target_lang");
  if (!target) throw ApiError(400, "Value for 'target_lang' not specified");
  const auto source = values.text("source_lang");
  query.source = source ? known(*source, models, "source_lang") : "auto";
  query.target = known(*target, models, "target_lang");
  const std::string tags = values.text("tag_handling").value_or("");
  if (!tags.empty() && tags != "html" && tags != "xml")
    throw ApiError(400, fmt::format("Value for 'tag_handling' not supported: {}", tags));
  query.format = tags.empty() ? DocumentFormat::text : DocumentFormat::html;
  return query;
}

HttpResponse deepl_answer(const TextQuery& query, std::span<const TranslatedText> texts) {
  Json all = Json::array();
  for (const TranslatedText& t : texts)
    all.push_back({{"detected_source_language", upper(t.detected ? t.detected->language : query.source)}, {"text", t.text}});
  return json_response(200, {{"translations", all}});
}

HttpResponse deepl_languages(const RequestValues& values, std::span<const Direction> models) {
  const std::string type = values.text("type").value_or("source");
  if (type != "source" && type != "target") throw ApiError(400, fmt::format("Value for 'type' not supported: {}", type));
  std::vector<std::string> codes;
  for (const Direction& d : models) {
    const std::string& code = type == "source" ? d.source : d.target;
    if (std::find(codes.begin(), codes.end(), code) == codes.end()) codes.push_back(code);
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

HttpResponse deepl_error(int status, const std::string& why) { return json_response(status, {{"message", why}}); }

}  // namespace starling
