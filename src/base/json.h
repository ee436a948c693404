// Parses JSON from untrusted sources. It is stricter than the library, which accepts duplicate keys (the last one wins) and nesting so
// deep that walking the result overflows the stack.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace starling {

// Parses text that must be one JSON object. Throws DataError, beginning with `where`, if it is not, has a duplicate key, or is nested
// deeper than 8 levels.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

}  // namespace starling
