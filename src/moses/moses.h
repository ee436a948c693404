// The tokenizer of Moses, which splits text into words and marks before subword-nmt cuts these into pieces, and joins them again: as the
// Perl scripts of Moses do it, or sacremoses, which is much the same in Python, with differences that models have learnt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"
#include "moses/letters.h"

namespace starling::moses {

struct Options {
  std::string language;            // as the program was told: "en"; "pb" has the rules of none
  bool perl = false;               // Moses's own scripts in place of sacremoses
  bool normalise_marks = true;     // quotation marks, dashes and spaces of other systems become plain ones
  bool plain_asian_marks = false;  // full-width ones too, and invisible characters become spaces: two more scripts of Moses
  bool split_hyphens = false;      // "well-known" is three words, the second of which is @-@
  bool words = true;               // false: text is words with spaces between them already, and stays so
  std::string abbreviations;       // further ones, a line each, as in Moses's files; with "#NUMERIC_ONLY#" only before numbers
  bool own_abbreviations = true;   // besides those, the ones that are built in
};

struct Token {
  std::string text;  // escaped: &quot; for a quotation mark
  Letters letters;   // the same, with the bytes of the text that each comes from
};

/// Splits a line into tokens.
class Tokenizer {
 public:
  explicit Tokenizer(Options options);
  std::vector<Token> tokens(std::string_view text) const;

 private:
  void normalise(Letters& text) const;
  void replace_asian_marks(Letters& text) const;
  void split_apostrophes(Letters& text) const;
  void split_full_stops(Letters& text) const;
  bool keeps_full_stop(const Letter* begin, const Letter* end, const Letter* next, bool last) const;

  Options options_;
  LetterClasses classes_;
  std::vector<std::string> abbreviations_, before_numbers_;  // sorted
};

/// Joins tokens, each a run of letters that are not spaces, to a text; letters keep what they come from, spaces come from nowhere
/// (begin == end).
class Detokenizer {
 public:
  explicit Detokenizer(Options options);
  Letters text(const Letters& tokens_with_spaces) const;

 private:
  Options options_;
  LetterClasses classes_;
};

/// Returns the abbreviations of a language that are built in, with spaces between them; "#" in front of those that are only such before
/// numbers. English ones for a language without any, as Moses has it.
std::string abbreviations(std::string_view language);

}  // namespace starling::moses
