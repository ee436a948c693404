#include "base/duration.h"

#include <charconv>
#include <cmath>

namespace starling {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
// In order of length, the longest first. "min" precedes "m", its synonym and prefix.
constexpr Unit kUnits[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"m", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

// The letters at the beginning.
std::string_view word_at(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
  return text.substr(0, end);
}

}  // namespace

std::optional<double> duration_seconds(std::string_view text) {
  double sum = 0, last = INFINITY;
  text = without_blanks(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0) || text.front() == '-') return std::nullopt;
    text = without_blanks(text.substr(static_cast<size_t>(end - text.data())));
    const std::string_view word = word_at(text);
    double unit = 0;
    for (const Unit& u : kUnits)
      if (u.name == word) unit = u.seconds;
    if (unit == 0 || unit >= last) return std::nullopt;
    sum += number * unit;
    last = unit;
    text = without_blanks(text.substr(word.size()));
  }
  return sum;
}

std::optional<double> unit_of_name(std::string_view name) {
  const std::string_view word = name.substr(name.rfind('-') + 1);
  if (word == name || name.ends_with("gb-s") || name.ends_with("gbit-s")) return std::nullopt;  // bytes per second are not a duration
  if (word == "hours") return 3600;
  if (word == "minutes") return 60;
  if (word == "seconds" || word == "s") return 1;
  if (word == "ms") return 1e-3;
  if (word == "us") return 1e-6;
  return std::nullopt;
}

}  // namespace starling
