// Where sentences of running text end, by rules: full stops are weighed by what stands around them, other marks nearly always end a
// sentence. In doubt a sentence goes on, since two that are translated together come out well, and halves of one do not.
#pragma once

#include <string_view>
#include <vector>

namespace starling {

struct TextPiece {
  std::string_view text;
  bool sentence = false;  // else it is between sentences: white space, and marks without a letter or digit
};

/// The sentences of a text and what is between them, in order; together they are the text, byte for byte. A newline or a tab always ends a
/// sentence. `language`: a code such as "de" or "pt-BR", "" if unknown. Malformed UTF-8 is kept. Takes time in proportion to the text.
std::vector<TextPiece> split_sentences(std::string_view text, std::string_view language);

/// Whether there is a letter or a digit in a text, so that there is something to translate.
bool has_word(std::string_view text);

}  // namespace starling
