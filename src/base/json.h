// Parses JSON from untrusted sources. It is stricter than the library, which accepts duplicate keys (the last one wins), nesting so deep
// that walking the result overflows the stack, and documents that take seventy times their text.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/byte_budget.h"

namespace starling {

// Parses text that must be one JSON value, and charges the budget with what the document takes. Throws DataError, beginning with `where`,
// if it is not, has a duplicate key, is nested deeper than 8 levels or takes too much.
nlohmann::json parse_json(std::string_view text, const std::string& where, ByteBudget& budget);
// The same of an object; without a budget, the document may take as much as its text and ByteBudget::kSpare.
nlohmann::json parse_json_object(std::string_view text, const std::string& where, ByteBudget& budget);
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

// Calls `take` with each object of a file of JSON objects, one a line, such as events.jsonl, and the number of its line. Skips what is no
// object: a process that was killed may have left half a line. Returns whether the file could be opened.
bool for_each_json_line(const std::string& path, const std::function<void(const nlohmann::json& object, int64_t line)>& take);

}  // namespace starling
