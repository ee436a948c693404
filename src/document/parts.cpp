#include "document/parts.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr std::u32string_view kStops = U".!?\u2026\u3002\uFF01\uFF1F\u0964\u061F\u06D4";
constexpr std::u32string_view kClauses = U";:\u2013\u2014\uFF1B\uFF1A\u061B)]}\u201D\u300D\uFF09";
constexpr std::u32string_view kCommas = U",\u3001\uFF0C\u060C";

// Scripts that are written without spaces, and their marks.
bool stands_without_spaces(char32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) || (c >= 0x3000 && c <= 0x30FF) ||
         (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF00 && c <= 0xFFEF);
}

char32_t last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && is_continuation(static_cast<unsigned char>(text[begin]))) --begin;
  return decode_utf8_at(text.substr(begin)).value;
}

}  // namespace

size_t place_to_cut(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  // Chooses the last place of the best kind. Clauses count only in the second half, spaces and characters anywhere.
  size_t best = 0, last = 0, first = 0;
  int best_kind = -1;
  char32_t before = 0;
  for (size_t at = 0; at <= most;) {
    const auto [c, length] = decode_utf8_at(text.substr(at));
    const bool space = length > 0 && is_unicode_space(c);
    if (at > 0) {
      if (first == 0) first = at;
      last = at;
      const bool east = before >= 0x3000 && before <= 0xFFEF;  // no space follows these marks
      int kind = 0;
      if (is_unicode_space(before) && !space) kind = 1;
      const char32_t mark_before = is_unicode_space(before) ? 0 : before;
      if (space || east) {
        if (is_one_of(mark_before, kCommas)) kind = 2;
        if (is_one_of(mark_before, kClauses)) kind = 3;
        if (is_one_of(mark_before, kStops)) kind = 4;
      }
      const bool far_enough = at >= most / 2;
      if (kind > 1 && !far_enough) kind = 1;
      if (kind > 0 && kind >= best_kind) {
        best = at;
        best_kind = kind;
      }
    }
    before = length > 0 ? c : 0xFFFD;
    at += static_cast<size_t>(std::max(length, 1));
    if (at >= text.size()) break;
  }
  if (best > 0) {  // the spaces that follow stay with the part before
    size_t end = best;
    while (end < text.size()) {
      const auto [c, length] = decode_utf8_at(text.substr(end));
      if (length == 0 || !is_unicode_space(c)) break;
      end += static_cast<size_t>(length);
    }
    return end;
  }
  if (last > 0) return last;
  const int length = decode_utf8_at(text).length;
  return static_cast<size_t>(std::max(length, 1));
}

std::vector<std::string> parts_that_fit(std::string_view sentence, const Vocabulary& vocabulary, int64_t most) {
  CHECK(most > 0, "parts of at most {} pieces", most);
  std::vector<std::string> parts;
  while (!sentence.empty()) {
    // The average piece is seldom longer than 16 bytes, so this head suffices; a long sentence is not encoded as a whole for each part.
    std::string_view head = sentence.substr(0, std::min(sentence.size(), static_cast<size_t>(most) * 16));
    head = head.substr(0, place_to_cut(head, sentence.size() == head.size() ? head.size() : head.size() - 4));
    for (auto line = vocabulary.encode_with_bytes(head); static_cast<int64_t>(line.ids.size()) > most;
         line = vocabulary.encode_with_bytes(head)) {
      const size_t fits = static_cast<size_t>(line.bytes[static_cast<size_t>(most) - 1].end);
      size_t shorter = place_to_cut(head, std::min(fits, head.size() - 1));
      if (shorter >= head.size()) shorter = without_trailing_space(head).size();  // includes the spaces that follow
      if (shorter >= head.size()) break;                                          // a single character of many pieces
      head = head.substr(0, shorter);
    }
    parts.emplace_back(head);
    sentence.remove_prefix(head.size());
  }
  return parts;
}

AlignedText joined_parts(std::span<const std::string> parts, std::span<const AlignedText> translations) {
  CHECK(parts.size() == translations.size(), "{} parts, {} translations", parts.size(), translations.size());
  AlignedText all;
  int64_t source = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const AlignedText& part = translations[i];
    if (!all.text.empty() && !part.text.empty() && !stands_without_spaces(last_character(all.text)) &&
        !stands_without_spaces(decode_utf8_at(part.text).value) && is_unicode_space(last_character(parts[i - 1])))
      all.text += ' ';
    const int64_t target = static_cast<int64_t>(all.text.size());
    for (const auto& [from, to] : part.links)
      all.links.push_back({{from.begin + source, from.end + source}, {to.begin + target, to.end + target}});
    all.text += part.text;
    source += static_cast<int64_t>(parts[i].size());
  }
  return all;
}

}  // namespace starling
