// Substitutions in a text of letters, from left to right, as those of regular expressions are: what was matched is not looked at again.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "moses/letters.h"

namespace starling::moses {

// Calls match(i, out) for each place; it returns how many letters it has matched, having appended what takes their place, or 0.
template <class Match>
void rewrite(Letters& text, const Match& match) {
  Letters out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    const size_t matched = match(i, out);
    if (matched == 0) out.push_back(text[i]);
    i += std::max<size_t>(matched, 1);
  }
  text = std::move(out);
}

inline bool has(const Letters& text, char32_t c) {
  return std::any_of(text.begin(), text.end(), [&](const Letter& l) { return l.c == c; });
}

// Appends letters that come from all of `from`.
inline void append(Letters& to, std::u32string_view what, const Letter* from, size_t count) {
  int32_t begin = from->begin, end = from->end;
  for (size_t i = 1; i < count; ++i) begin = std::min(begin, from[i].begin), end = std::max(end, from[i].end);
  for (const char32_t c : what) to.push_back({c, c == ' ' ? end : begin, end});
}

inline void replace(Letters& text, std::u32string_view from, std::u32string_view by) {
  if (!has(text, from[0])) return;
  rewrite(text, [&](size_t i, Letters& out) -> size_t {
    if (text.size() - i < from.size()) return 0;
    for (size_t k = 0; k < from.size(); ++k)
      if (text[i + k].c != from[k]) return 0;
    append(out, by, &text[i], from.size());
    return from.size();
  });
}

// Appends a space that comes from nowhere.
inline void append_space(Letters& to, const Letter& at) { to.push_back({' ', at.begin, at.begin}); }

// Makes one space of several; `all`: also of other white space.
inline void squeeze_spaces(Letters& text, bool all) {
  const auto is_space = [&](char32_t c) { return c == ' ' || (all && is_unicode_space(c)); };
  Letters out;
  out.reserve(text.size());
  for (const Letter& letter : text) {
    const bool space = is_space(letter.c);
    if (space && !out.empty() && out.back().c == ' ')
      out.back().end = std::max(out.back().end, letter.end);
    else
      out.push_back({space ? U' ' : letter.c, letter.begin, letter.end});
  }
  text = std::move(out);
}

inline void strip(Letters& text) {
  while (!text.empty() && is_unicode_space(text.back().c)) text.pop_back();
  const auto first = std::find_if(text.begin(), text.end(), [](const Letter& l) { return !is_unicode_space(l.c); });
  text.erase(text.begin(), first);
}

}  // namespace starling::moses
