// Reading JSON that may come from anywhere: stricter than the library, which accepts keys given twice (the last one wins) and nesting
// so deep that walking the result overflows the stack.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace starling {

// Parses text that is one JSON object; DataError beginning with `where` when it is not, has a duplicate key or more than 8 levels.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

}  // namespace starling
