#include "config/meant_number.h"

#include <string_view>

namespace starling {
namespace {

// Returns what precedes the final letter if that is a whole number: "10" of "10u".
std::string_view number_before(std::string_view text, std::string_view letters) {
  if (text.size() < 2 || letters.find(text.back()) == std::string_view::npos) return "";
  text.remove_suffix(1);
  return text.find_first_not_of("0123456789") == std::string_view::npos ? text : "";
}

// Returns "25000" for 25,000 or 25_000, where groups of three digits follow the first; "" for other text.
std::string without_separators(const std::string& text) {
  std::string digits;
  for (size_t at = 0, group = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      digits += text[at];
      ++group;
      continue;
    }
    const bool first = digits.size() == group;
    if (first ? group == 0 || group > 3 || at == text.size() : group != 3) return "";
    if (at < text.size() && text[at] != ',' && text[at] != '_') return "";
    group = 0;
  }
  return digits.front() == '0' ? "" : digits;  // 0,125 does not have a group of thousands
}

// Returns the whole number meant by 10k, 10M, 10u (Marian's updates), 1e4 or 10,000; "" for other text.
std::string whole_number(std::string text) {
  for (const auto& [letters, zeros] : {std::pair("u", ""), {"kK", "000"}, {"M", "000000"}, {"G", "000000000"}})
    if (const std::string_view number = number_before(text, letters); !number.empty()) return std::string(number) + zeros;
  if (const size_t e = text.find_first_of("eE"); e != std::string::npos) {
    const std::string_view mantissa = number_before(std::string_view(text).substr(0, e + 1), "eE");
    const bool digit = e + 2 == text.size() && text[e + 1] >= '0' && text[e + 1] <= '9';
    return digit && !mantissa.empty() ? std::string(mantissa) + std::string(static_cast<size_t>(text[e + 1] - '0'), '0') : "";
  }
  return without_separators(text);
}

// Returns the number meant by a decimal comma: "0.1" for "0,1".
std::string with_a_point(std::string text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == text.size()) return "";
  text[comma] = '.';
  return text.find_first_not_of("0123456789.") == std::string::npos && text.find('.') == text.rfind('.') ? text : "";
}

}  // namespace

std::string meant_number(const std::string& text, bool whole) {
  if (text.size() > 40) return "";
  return whole ? whole_number(text) : with_a_point(text);
}

}  // namespace starling
