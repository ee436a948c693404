// The rules by which pairs are dropped. All are asked of each pair, so that it is known what each alone drops, but for pairs that are
// empty or too long, of which nothing else is asked. Rules with a threshold compare what was measured of the pair, so other thresholds can
// be tried without the text; the others are marks, which hold or not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cleaning/options.h"

namespace starling {

enum class Rule : uint8_t {
  empty,
  encoding,
  length,
  ratio,
  long_word,
  letters,
  script,
  copy,
  similar,
  digits,
  addresses,
  placeholders,
  markup,
  repetition,
  language,
  held_out,
  score,
  duplicate,
  frequent,
  near_copy
};
constexpr auto words(Rule) {
  return std::array{"empty",    "encoding", "length", "ratio",     "long-word",    "letters",  "script",
                    "copy",     "similar",  "digits", "addresses", "placeholders", "markup",   "repetition",
                    "language", "held-out", "score",  "duplicate", "frequent",     "near-copy"};
}
inline constexpr size_t kRules = words(Rule{}).size();

// A set of rules, such as those that a pair breaks.
class RuleSet {
 public:
  RuleSet() = default;
  explicit RuleSet(uint32_t bits) : bits_(bits) {}
  void set(Rule rule, bool broken = true) { bits_ |= uint32_t{broken} << static_cast<unsigned>(rule); }
  bool has(Rule rule) const { return bits_ >> static_cast<unsigned>(rule) & 1; }
  bool any() const { return bits_ != 0; }
  bool only(Rule rule) const { return bits_ == uint32_t{1} << static_cast<unsigned>(rule); }
  uint32_t bits() const { return bits_; }
  std::string text() const;  // "ratio+digits"

 private:
  uint32_t bits_ = 0;
};

// What is measured of a pair (cleaning/pair_measures.h): counts, and shares and ratios in ten-thousandths. Whole numbers are equal in
// memory, in a file and in a browser, so a threshold decides the same everywhere.
enum class Measure : uint8_t { words, characters, ratio, long_word, letters, script, similarity, digits, repeated, both_repeat };
constexpr auto words(Measure) {
  return std::array{"words", "characters", "ratio", "long-word", "letters", "script", "similarity", "digits", "repeated", "both-repeat"};
}
inline constexpr size_t kMeasures = words(Measure{}).size();
inline constexpr double kPart = 1e-4;  // unit of shares and ratios

struct PairMeasures {
  std::array<int32_t, kMeasures> values{};
  RuleSet marks;  // of the rules without a threshold; what takes long (language, held_out) is marked only if it is asked
  int32_t operator[](Measure m) const { return values[static_cast<size_t>(m)]; }
};

// A rule that compares a measure with the value of an option.
struct Threshold {
  enum class Breaks : uint8_t { below, at_least, above };
  Rule rule;
  Measure measure;
  std::string_view key;  // of the option, in the section clean
  Breaks breaks;         // on which side of the limit a pair breaks the rule
  int32_t limit;         // the option's value, or its default if the option turns the rule off
  double unit;           // of the limit: 1 or kPart
  bool asked;
};

// What the options ask.
class Rules {
 public:
  explicit Rules(const CleanOptions& options);
  // Returns the rules that a pair breaks by itself: all but those of its scores and of its copies.
  RuleSet broken(const PairMeasures& pair) const;
  const std::vector<Threshold>& thresholds() const { return thresholds_; }
  RuleSet marks() const { return marks_; }              // the rules without a threshold that are asked
  int32_t repetitions() const { return repetitions_; }  // of one side that the other does not have; 0: not asked

 private:
  std::vector<Threshold> thresholds_;
  RuleSet marks_;
  int32_t repetitions_;
};

}  // namespace starling
