#include "text/unicode.h"

#include <algorithm>

namespace starling {

std::string to_lower_utf8(std::string_view text) { return encode_utf8(to_lower(decode_utf8(text))); }

std::vector<std::u32string_view> split_on_space(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_unicode_space(text[i])) ++i;
    const std::size_t begin = i;
    while (i < text.size() && !is_unicode_space(text[i])) ++i;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
  }
  return words;
}

std::string with_single_spaces(std::string_view text) {
  std::string out;
  for (const std::string_view word : split_on_space(text)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

std::vector<std::string_view> split_on_space(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;  // of the current word
  for (std::size_t i = 0; i < text.size();) {
    const auto [value, length] = decode_utf8_at(text.substr(i));
    const std::size_t next = i + std::max(length, 1);
    if (length > 0 && is_unicode_space(value)) {
      if (i > begin) words.push_back(text.substr(begin, i - begin));
      begin = next;
    }
    i = next;
  }
  if (begin < text.size()) words.push_back(text.substr(begin));
  return words;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && is_continuation(text[last])) --last;
    const auto [value, length] = decode_utf8_at(text.substr(last));
    if (length == 0 || !is_unicode_space(value)) break;
    text = text.substr(0, last);
  }
  return text;
}

}  // namespace starling
