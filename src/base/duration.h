// Durations as people write them: "12m", "1h30m", "5 min", "1.5h", "90s", "200ms".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starling {

/// Parses a duration and returns its seconds. Every number must have a unit (d, h, m or min, s, ms, us; each at most once, the longest
/// first). Returns nullopt for any other text, such as a bare number.
std::optional<double> duration_seconds(std::string_view text);

/// Returns the length in seconds of the unit that ends a hyphenated name ("max-minutes", "deadline-seconds", "at-s", "latency-us");
/// nullopt for other names and for rates ("memory-gb-s").
std::optional<double> unit_of_name(std::string_view name);

}  // namespace starling
