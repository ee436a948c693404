// What a full stop after a word means, by language: abbreviations, words that begin sentences, and whether a number with a full stop is an
// ordinal ("3. Oktober"). The lists are short on purpose: two sentences that stay joined still translate well, a sentence cut in two does
// not.
#pragma once

#include <string>
#include <string_view>

namespace starling {

enum class Abbreviation {
  none,
  goes_on,        // the sentence continues after it: titles, "e.g."
  before_number,  // an abbreviation only if a number follows: "No. 5"
  may_end,        // ends the sentence if the next word is one that begins sentences: "Inc.", "etc."
};

class AbbreviationRules {
 public:
  /// Selects the rules of a language; English ones for a language without lists or "".
  explicit AbbreviationRules(std::string_view language);

  /// Classifies a word in UTF-8, given without its final full stop. A lower-case entry of the lists also matches the capitalised word.
  Abbreviation of(std::string_view word) const;
  /// Returns whether a capitalised word is one that commonly begins sentences, if the language has a list of them.
  bool begins_sentences(std::string_view word) const;
  bool knows_beginnings() const { return !beginnings_.empty(); }
  /// Whether numbers with a full stop are ordinals in this language.
  bool ordinals() const { return ordinals_; }

 private:
  std::string_view goes_on_, before_number_, may_end_, beginnings_;  // words with spaces around each
  bool ordinals_ = false;
};

}  // namespace starling
