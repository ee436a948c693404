// The rewriting passes of the script mteval-v13a that BLEU's 13a and zh and TER's normalisation have in common, and that normalisation.
// Their order, and that a pass never looks again at what it has consumed, are part of the definition.
#pragma once

#include <string>
#include <string_view>

#include "text/unicode.h"

namespace starling::detail {

/// Replaces from left to right, never looking at what it has written.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// "&lt;" and its like as characters, one after the other: "&amp;lt;" ends as "<".
void decode_entities(std::string& text);

/// ASCII punctuation set apart by spaces; periods and commas stay inside numbers only; a hyphen leaves the digit before it.
std::string split_western(std::string_view sentence, bool possessives = false);

/// What Tercom offers before it looks for edits, as sacreBLEU has it (norm:yes, asian:yes): entities decoded and punctuation set apart;
/// with `asian`, Chinese characters and CJK punctuation too, each by itself.
std::string normalize_for_ter(std::string text, bool asian);

/// The text with spaces around each code point that stands alone.
template <class Test>
std::string set_apart(std::u32string_view text, Test alone) {
  std::string out;
  out.reserve(2 * text.size());
  for (const char32_t c : text) {
    const bool apart = alone(c);
    if (apart) out += ' ';
    append_utf8(out, c);
    if (apart) out += ' ';
  }
  return out;
}

enum class Alone { first, second };

/// A pass over pairs of neighbours: of a pair that matches, which is consumed, one character gets spaces around it.
template <class Char, class Matches>
std::basic_string<Char> split_pairs(const std::basic_string<Char>& in, Alone which, Matches matches) {
  constexpr Char space = ' ';
  std::basic_string<Char> out;
  out.reserve(in.size() + in.size() / 2);
  for (std::size_t i = 0; i < in.size();) {
    if (i + 1 == in.size() || !matches(in[i], in[i + 1])) {
      out += in[i++];
      continue;
    }
    if (which == Alone::first)
      out += {space, in[i], space, in[i + 1]};
    else
      out += {in[i], space, in[i + 1], space};
    i += 2;
  }
  return out;
}

}  // namespace starling::detail
