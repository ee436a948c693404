#include "base/byte_size.h"

#include <charconv>

#include "base/ascii.h"

namespace starling {

std::optional<int64_t> byte_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) return std::nullopt;
  const size_t power = std::string_view("kmgt").find(ascii_lower(unit.front()));
  unit.remove_prefix(1);
  if (power == std::string_view::npos || !(unit.empty() || unit == "B" || unit == "b" || unit == "i" || unit == "iB")) return std::nullopt;
  const double bytes = number * static_cast<double>(int64_t{1} << (10 * (power + 1)));
  if (!(bytes >= 1 && bytes < 0x1p62)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

}  // namespace starling
