#include "serve/api.h"

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "base/push_once.h"
#include "base/utf8.h"

namespace starling {
namespace {

ApiError wrong_type(const std::string& name, const char* wanted) {
  return {400, fmt::format("Invalid request: {} is not {}", name, wanted)};
}

std::string without_nul(const std::string& name, std::string text) {
  if (const size_t at = text.find('\0'); at != text.npos)
    throw ApiError(400, fmt::format("Invalid request: {} has a NUL character at byte {}; leave it out", name, at));
  return text;
}

// Of JSON its parser has seen to this.
std::string valid(const std::string& name, std::string text) {
  if (const auto at = invalid_utf8_offset(text))
    throw ApiError(400, fmt::format("Invalid request: {} is not valid UTF-8 at byte {}; send text in UTF-8", name, *at));
  return without_nul(name, std::move(text));
}

}  // namespace

RequestValues::RequestValues(const HttpRequest& request) : fields_(request.fields) {
  const bool says_json = request.content_type() == "application/json";
  // Some clients send JSON without a content type.
  const bool looks_json = !says_json && request.content_type().empty() && !request.body.empty();
  if (!says_json && !looks_json) return;
  try {
    json_ = parse_json_object(request.body, "the request's body");
  } catch (const DataError& e) {
    throw ApiError(400, fmt::format("Invalid JSON format: {}", e.what()));
  }
}

bool RequestValues::has(const std::string& name) const {
  if (json_.is_object()) return json_.contains(name) && !json_.at(name).is_null();
  for (const auto& [key, value] : fields_)
    if (key == name) return true;
  return false;
}

std::optional<std::string> RequestValues::text(const std::string& name) const {
  if (!has(name)) return std::nullopt;
  std::string value;
  if (json_.is_object()) {
    if (!json_.at(name).is_string()) throw wrong_type(name, "a string");
    value = without_nul(name, json_.at(name).get<std::string>());
  } else {
    for (const auto& [key, v] : fields_)
      if (key == name) {
        value = valid(name, v);
        break;
      }
  }
  if (value.empty()) return std::nullopt;
  return value;
}

std::string RequestValues::required(const std::string& name) const {
  auto value = text(name);
  if (!value) throw ApiError(400, fmt::format("Invalid request: missing {} parameter", name));
  return *std::move(value);
}

std::vector<std::string> RequestValues::texts(const std::string& name, bool& list) const {
  std::vector<std::string> all;
  list = false;
  if (!has(name)) return all;
  if (!json_.is_object()) {
    for (const auto& [key, value] : fields_)
      if (key == name) all.push_back(valid(name, value));
    return all;
  }
  const nlohmann::json& value = json_.at(name);
  if (value.is_string()) return {without_nul(name, value.get<std::string>())};
  if (!value.is_array()) throw wrong_type(name, "a string or a list of strings");
  list = true;
  for (const auto& each : value) {
    if (!each.is_string()) throw wrong_type(name, "a string or a list of strings");
    all.push_back(without_nul(name, each.get<std::string>()));
  }
  return all;
}

std::optional<int64_t> RequestValues::integer(const std::string& name) const {
  if (!has(name)) return std::nullopt;
  if (json_.is_object() && json_.at(name).is_number_integer()) {
    if (json_.at(name).is_number_unsigned() && json_.at(name).get<uint64_t>() > INT64_MAX) throw wrong_type(name, "a whole number");
    return json_.at(name).get<int64_t>();
  }
  const auto digits = text(name);
  if (!digits) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), value);
  if (error != std::errc() || end != digits->data() + digits->size()) throw wrong_type(name, "a whole number");
  return value;
}

bool RequestValues::flag(const std::string& name) const {
  if (!has(name)) return false;
  const auto said = word(name);
  if (!said || *said == "false" || *said == "0") return false;
  if (*said == "true" || *said == "1") return true;
  throw wrong_type(name, "true or false");
}

std::optional<std::string> RequestValues::word(const std::string& name) const {
  if (has(name) && json_.is_object() && (json_.at(name).is_boolean() || json_.at(name).is_number())) return json_.at(name).dump();
  return text(name);
}

std::optional<nlohmann::json> RequestValues::object(const std::string& name) const {
  if (!has(name) || !json_.is_object() || !json_.at(name).is_object()) return std::nullopt;
  return json_.at(name);
}

std::set<std::string> RequestValues::names() const {
  std::set<std::string> all;
  if (json_.is_object())
    for (const auto& item : json_.items()) all.insert(item.key());
  else
    for (const auto& field : fields_) all.insert(field.first);
  return all;
}

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return !is_continuation(c); });
}

std::vector<std::string> languages_of(std::span<const Direction> models) {
  std::vector<std::string> codes;
  const auto add = [&](const std::string& code) { push_once(codes, code); };
  for (const Direction& d : models) add(d.source);
  for (const Direction& d : models) add(d.target);
  return codes;
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

HttpResponse json_response(int status, const nlohmann::ordered_json& json) { return {status, json_text(json), "application/json", {}}; }

}  // namespace starling
