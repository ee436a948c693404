// Durations as people write them: "12m", "1h30m", "5 min", "1.5h", "90s", "200ms".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starling {

/// Seconds of a duration whose numbers all have units (d, h, m or min, s, ms, us; each at most once, the longest first); nothing for other
/// text, such as a number alone.
std::optional<double> duration_seconds(std::string_view text);

/// The unit in seconds that the last part of a name in words says ("max-minutes", "deadline-seconds", "at-s", "latency-us"); nothing for
/// others and for rates ("memory-gb-s").
std::optional<double> unit_of_name(std::string_view name);

}  // namespace starling
