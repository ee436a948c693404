// UTF-8 by the table of well-formed sequences of the Unicode standard (chapter 3, table 3-7): the second byte's range depends on
// the first byte, which is what excludes overlong forms, surrogates and values above U+10FFFF. Plain ASCII is skipped eight bytes
// at a time, since most text is.
#include "base/utf8.h"

#include <cstring>

#include "base/error.h"

namespace starling {

namespace {

// The number of leading bytes, in multiples of eight, that are ASCII.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080ULL) break;
  }
  return i;
}

DecodedCodePoint decode_two(std::string_view text, unsigned char first) {
  if (text.size() < 2) return {};
  const unsigned char second = text[1];
  if (!is_continuation(second)) return {};
  return {(char32_t{first} & 0x1F) << 6 | (second & 0x3Fu), 2};
}

DecodedCodePoint decode_three(std::string_view text, unsigned char first) {
  if (text.size() < 3) return {};
  const unsigned char second = text[1], third = text[2];
  if (!is_continuation(second) || !is_continuation(third)) return {};
  const char32_t value = (char32_t{first} & 0x0F) << 12 | (second & 0x3Fu) << 6 | (third & 0x3Fu);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < 0x800 || surrogate) return {};
  return {value, 3};
}

DecodedCodePoint decode_four(std::string_view text, unsigned char first) {
  if (text.size() < 4) return {};
  const unsigned char second = text[1], third = text[2], fourth = text[3];
  if (!is_continuation(second) || !is_continuation(third) || !is_continuation(fourth)) return {};
  const char32_t value = (char32_t{first} & 0x07) << 18 | (second & 0x3Fu) << 12 | (third & 0x3Fu) << 6 | (fourth & 0x3Fu);
  if (value < 0x10000 || value > 0x10FFFF) return {};
  return {value, 4};
}

}  // namespace

DecodedCodePoint decode_utf8_at(std::string_view text) {
  const unsigned char first = text[0];
  if (first < 0x80) return {first, 1};
  if (first >= 0xC2 && first <= 0xDF) return decode_two(text, first);
  if (first >= 0xE0 && first <= 0xEF) return decode_three(text, first);
  if (first >= 0xF0 && first <= 0xF4) return decode_four(text, first);
  return {};
}

std::optional<std::size_t> invalid_utf8_offset(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    i += ascii_prefix(text.substr(i));
    if (i == text.size()) break;
    const int length = decode_utf8_at(text.substr(i)).length;
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto [value, length] = decode_utf8_at(text.substr(i));
    if (length == 0) {
      const unsigned byte = static_cast<unsigned char>(text[i]);
      throw DataError(fmt::format("invalid UTF-8 at byte {} (0x{:02X}); convert the text to UTF-8", i, byte));
    }
    out.push_back(value);
    i += length;
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  CHECK(c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF), "0x{:X} is no code point", static_cast<std::uint32_t>(c));
  const auto continuation = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3F))); };
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | c >> 6));
    continuation(0);
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | c >> 12));
    continuation(6);
    continuation(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | c >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

std::string encode_utf8(std::u32string_view code_points) {
  std::string out;
  out.reserve(code_points.size());
  for (const char32_t c : code_points) append_utf8(out, c);
  return out;
}

}  // namespace starling
