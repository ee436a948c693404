// Well-formed sequences are those of the Unicode standard (chapter 3, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
// Plain ASCII is skipped eight bytes at a time, since most text is.
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

}  // namespace

DecodedCodePoint decode_utf8_at(std::string_view text) {
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by length: what is below has a shorter form
  const unsigned char first = text[0];
  if (first < 0x80) return {first, 1};
  const int length = (first & 0xE0) == 0xC0 ? 2 : (first & 0xF0) == 0xE0 ? 3 : (first & 0xF8) == 0xF0 ? 4 : 0;
  if (length == 0 || text.size() < static_cast<std::size_t>(length)) return {};
  char32_t value = first & (0x7Fu >> length);
  for (int i = 1; i < length; ++i) {
    const unsigned char next = text[i];
    if (!is_continuation(next)) return {};
    value = value << 6 | (next & 0x3Fu);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[length] || surrogate || value > 0x10FFFF) return {};
  return {value, length};
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
  std::u32string out(text.size(), 0);
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const auto byte = static_cast<unsigned char>(text[i]); byte < 0x80) {
      out[count++] = byte;
      ++i;
      continue;
    }
    const auto [value, length] = decode_utf8_at(text.substr(i));
    if (length == 0) {
      const unsigned byte = static_cast<unsigned char>(text[i]);
      throw DataError(fmt::format("invalid UTF-8 at byte {} (0x{:02X}); convert the text to UTF-8", i, byte));
    }
    out[count++] = value;
    i += length;
  }
  out.resize(count);
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  CHECK(c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF), "0x{:X} is not a code point", static_cast<std::uint32_t>(c));
  constexpr unsigned char kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};  // by length
  const int length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  out.push_back(static_cast<char>(kLead[length] | c >> 6 * (length - 1)));
  for (int shift = 6 * (length - 2); shift >= 0; shift -= 6) out.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3F)));
}

std::string encode_utf8(std::u32string_view code_points) {
  std::string out;
  out.reserve(code_points.size());
  for (const char32_t c : code_points) append_utf8(out, c);
  return out;
}

bool is_unicode_blank(std::string_view text) {
  while (!text.empty()) {
    const DecodedCodePoint next = decode_utf8_at(text);
    if (next.length == 0 || !is_unicode_space(next.value)) return false;
    text.remove_prefix(static_cast<size_t>(next.length));
  }
  return true;
}

}  // namespace starling
