// UTF-8: validation, decoding, encoding, for text and configurations alike; tables of code points.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace starling {

inline bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/// Returns the byte offset of the first malformed UTF-8 sequence (stray or missing continuation byte, overlong form, surrogate,
/// above U+10FFFF), or nullopt if the text is valid.
std::optional<std::size_t> invalid_utf8_offset(std::string_view text);

/// Returns the bytes of the byte order mark that a text begins with: 3, or 0.
inline std::size_t byte_order_mark(std::string_view text) { return text.starts_with("\xEF\xBB\xBF") ? 3 : 0; }

/// One decoded code point and the number of bytes it took; length 0 means that the bytes are malformed.
struct DecodedCodePoint {
  char32_t value = 0;
  int length = 0;
};

/// Decodes the code point at the beginning of a non-empty text.
DecodedCodePoint decode_utf8_at(std::string_view text);

/// Returns all code points of a text; throws DataError with the byte offset if the text is not valid UTF-8.
std::u32string decode_utf8(std::string_view text);

/// Appends one code point as UTF-8; throws InternalError for a surrogate or a value above U+10FFFF.
void append_utf8(std::string& out, char32_t code_point);

/// Returns the code points as UTF-8.
std::string encode_utf8(std::u32string_view code_points);

struct CodePoints {
  char32_t first, last;
};

/// Returns the entry whose code points, `first` to `last`, include c, or null; the table is sorted and its entries do not overlap.
template <class Entry, std::size_t n>
const Entry* entry_of(const Entry (&table)[n], char32_t c) {
  const auto after = std::upper_bound(std::begin(table), std::end(table), c, [](char32_t x, const Entry& e) { return x < e.first; });
  return after != std::begin(table) && c <= after[-1].last ? after - 1 : nullptr;
}

/// Returns whether a text has nothing but white space, as is_unicode_space() has it; false for malformed text.
bool is_unicode_blank(std::string_view text);

/// Returns whether Python's str.split() and str.strip() treat the code point as white space.
inline bool is_unicode_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

}  // namespace starling
