// One side of a pair, decoded, divided into words and made comparable once for all that is measured of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace starling {

class JudgedSide {
 public:
  explicit JudgedSide(std::string_view utf8);
  JudgedSide(const JudgedSide&) = delete;  // the words point into the characters
  JudgedSide& operator=(const JudgedSide&) = delete;

  const std::string_view text;  // valid UTF-8
  const std::u32string characters;
  const std::vector<std::u32string_view> words;  // maximal runs without white space
  const std::string copy_key;     // letters and digits in lower case, but for which copies may differ; the text itself if it has none
  size_t letters = 0, shown = 0;  // characters that are letters (Unicode's Alphabetic), and that are no white space
  double length() const { return static_cast<double>(characters.size()); }
};

}  // namespace starling
