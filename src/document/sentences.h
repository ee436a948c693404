// Splits running text into sentences by rules: full stops are judged by their context, other marks nearly always end a sentence. In doubt
// a sentence continues, since two sentences translate well together, but halves of one do not.
#pragma once

#include <string_view>
#include <vector>

namespace starling {

struct TextPiece {
  std::string_view text;
  bool sentence = false;  // false: between sentences, i.e. white space, and what has no letter
};

/// Returns the sentences of a text and what is between them, in order; together they are the text, byte for byte. A newline or a tab always
/// ends a sentence. `language` is a code such as "de" or "pt-BR"; "" if unknown. Malformed UTF-8 is kept. Takes linear time.
std::vector<TextPiece> split_sentences(std::string_view text, std::string_view language);

/// Returns whether a text has a letter, so that there is something to translate: numbers, times, dates, prices and marks have none, in the
/// digits of any script.
bool has_letter(std::string_view text);

}  // namespace starling
