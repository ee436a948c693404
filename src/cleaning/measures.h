// What is measured of a pair, by which rules decide. The formulas are those of the filters that people know (OpusFilter's and
// OpusCleaner's), so that their thresholds mean the same here; where two programs differ, a comment says whose formula it is.
#pragma once

#include <cstdint>
#include <span>

#include "cleaning/judged_side.h"
#include "cleaning/options.h"

namespace starling {

// Returns the longer over the shorter; 1 if both are 0, infinity if one is. (OpusFilter: 0 if both are.)
double ratio_of_lengths(double a, double b);
// Returns the characters of the longest word; 0 without words.
double longest_word(const JudgedSide& side);
// Returns the mean number of characters of a word; 0 without words.
double mean_word_length(const JudgedSide& side);
// Returns the share of characters that are letters or marks that count as such (Unicode's Alphabetic), 1 if there are none. spaces: they
// count as characters.
double letter_share(const JudgedSide& side, bool spaces);
// Returns the share of letters that are of one of the scripts, by their codes; 1 without letters.
double script_share(const JudgedSide& side, std::span<const std::string_view> scripts);
// Returns minus the logarithm of 1 + |s - t| + what is above one in s and in t, the numbers of `.`, `?`, `!` and the ellipsis. 0 is best.
double sentence_marks(const JudgedSide& source, const JudgedSide& target);
// Returns how alike the sequences of ASCII digits but 0 are: 2M/T, M by recursive longest common blocks (Python's difflib); 1 without any.
// Of more than 200 digits, where that would take time in proportion to their cube, it is their similarity.
double digit_similarity(const JudgedSide& source, const JudgedSide& target);
// Returns the length of the longest common run of characters over that of the shorter side; 0 if one is empty.
double common_run_share(const JudgedSide& source, const JudgedSide& target);
// Returns 1 minus the Levenshtein distance of the characters over the length of the longer side; 1 if both are empty.
double similarity(const JudgedSide& source, const JudgedSide& target);
// Returns how often the part that is repeated most comes again at once, with or without spaces between, kMostRepetitions at most; 0 if none
// is repeated `times` times. A part has `shortest` to `longest` characters and begins with one that is not a space. (OpusFilter: the first
// part.)
int64_t repetitions(const JudgedSide& side, int64_t times, int64_t shortest, int64_t longest);
// Returns whether there is an element of markup: `<`, a letter, and a `>` outside quotation marks.
bool has_markup(const JudgedSide& side);
// Returns the addresses (http://, https://, ftp://, www.) in order.
std::vector<std::u32string_view> addresses(const JudgedSide& side);
// Returns the numbers, ascending and each once: ASCII digits that touch no letter, with a sign, without zeros in front; `.`, `,` and `:`
// between them are alike.
std::vector<std::u32string> numbers(const JudgedSide& side);
// Returns one more than the numbers that both sides have, over one more than those that one side has (OpusCleaner).
double number_agreement(const JudgedSide& source, const JudgedSide& target);

}  // namespace starling
