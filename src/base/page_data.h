// Pages of HTML that carry their data: the element with the data has a mark in the page that the program is built with.
#pragma once

#include <string>
#include <string_view>

namespace starling {

inline constexpr std::string_view kPageDataMark = "/*REPORT*/";

/// Returns the page with this JSON in place of its mark; "" leaves the element empty. The JSON cannot end the element, whatever is in it.
inline std::string with_page_data(std::string_view page, std::string_view json) {
  std::string data;
  for (const char c : json) data += c == '<' ? "\\u003c" : std::string(1, c);  // no "</script>" may appear
  std::string whole(page);
  return whole.replace(whole.find(kPageDataMark), kPageDataMark.size(), data);
}

}  // namespace starling
