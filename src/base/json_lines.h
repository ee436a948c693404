// Files of JSON objects, one a line, such as events.jsonl.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace starling {

/// Calls `take` with each object and the number of its line. Skips what is no object: a process that was killed may have left half a line.
/// Returns whether the file could be opened.
bool for_each_json_line(const std::string& path, const std::function<void(const nlohmann::json& object, int64_t line)>& take);

}  // namespace starling
