// UTF-8: validation, decoding, encoding, for text and configurations alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace starling {

inline bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/// Returns the byte offset of the first malformed UTF-8 sequence (stray or missing continuation byte, overlong form, surrogate,
/// above U+10FFFF), or nullopt if the text is valid.
std::optional<std::size_t> invalid_utf8_offset(std::string_view text);

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

}  // namespace starling
