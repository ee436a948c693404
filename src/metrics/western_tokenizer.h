// The rewriting passes of the script mteval-v13a that BLEU's 13a and zh share with TER's normalisation, and that normalisation. The order
// of the passes, and the rule that a pass never rescans what it has consumed, are part of the definition.
#pragma once

#include <string>
#include <string_view>

#include "text/unicode.h"

namespace starling::detail {

/// Replaces from left to right, without rescanning its own output.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Decodes "&lt;" and similar entities one kind after another, so that "&amp;lt;" ends as "<".
void decode_entities(std::string& text);

/// Separates ASCII punctuation with spaces; periods and commas stay attached only inside numbers; a hyphen is split from a digit before it.
std::string split_western(std::string_view sentence, bool possessives = false);

/// Tercom's optional normalisation before the search for edits, as in sacreBLEU (norm:yes, asian:yes): decodes entities and separates
/// punctuation; with `asian`, also separates each Chinese character and CJK punctuation mark.
std::string normalize_for_ter(std::string text, bool asian);

/// Returns the text with spaces around each code point for which `alone` holds.
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

/// Makes a pass over pairs of neighbours. A pair that matches is consumed, and one of its characters gets spaces around it.
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
