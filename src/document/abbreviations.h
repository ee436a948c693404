// What a full stop means after a word, by language: abbreviations, words that begin sentences, and whether a number with a full stop is an
// ordinal ("3. Oktober"). The lists are short on purpose: a sentence that is joined with its neighbour is translated all the same, one that
// is cut in two is not.
#pragma once

#include <string>
#include <string_view>

namespace starling {

enum class Abbreviation {
  none,
  goes_on,        // what follows belongs to it: titles, "e.g."
  before_number,  // only where a number follows: "No. 5"
  may_end,        // ends a sentence where the next word is one that begins sentences: "Inc.", "etc."
};

class AbbreviationRules {
 public:
  /// Those of a language; of one without lists, or "", English ones.
  explicit AbbreviationRules(std::string_view language);

  /// Of a word without its last full stop, in UTF-8. A word of the lists that begins with a small letter stands for its capitalised form
  /// too.
  Abbreviation of(std::string_view word) const;
  /// Whether a capitalised word is one of those that begin sentences commonly, where the language has a list of them.
  bool begins_sentences(std::string_view word) const;
  bool knows_beginnings() const { return !beginnings_.empty(); }
  /// Whether numbers with a full stop are ordinals.
  bool ordinals() const { return ordinals_; }

 private:
  std::string_view goes_on_, before_number_, may_end_, beginnings_;  // words with spaces around each
  bool ordinals_ = false;
};

}  // namespace starling
