// The checks ride on the parser's callback, so that bad text is refused before it is held in memory.
#include "base/json.h"

#include <set>
#include <vector>

#include "base/error.h"

namespace starling {

using Json = nlohmann::json;

Json parse_json_object(std::string_view text, const std::string& where) {
  constexpr int most_levels = 8;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > most_levels) throw DataError(fmt::format("{}: JSON nested deeper than {} levels", where, most_levels));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw DataError(fmt::format("{}: the JSON key '{}' occurs twice", where, value.get<std::string>()));
    }
    return true;
  };
  try {
    Json json = Json::parse(text, check);
    if (!json.is_object()) throw DataError(fmt::format("{}: is JSON, but not an object", where));
    return json;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: is not JSON: {}", where, error.what()));
  }
}

}  // namespace starling
