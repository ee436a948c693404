// The rules by which pairs are dropped. All are asked of each pair, so that it is known what each alone
// drops, but for pairs that are empty or too long, of which nothing else is asked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cleaning/judged_side.h"
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
  duplicate
};
constexpr auto words(Rule) {
  return std::array{"empty",  "encoding",  "length",       "ratio",  "long-word",  "letters",  "script",   "copy",     "similar",
                    "digits", "addresses", "placeholders", "markup", "repetition", "language", "held-out", "duplicate"};
}
inline constexpr size_t kRules = words(Rule{}).size();

// Rules that a pair breaks.
class BrokenRules {
 public:
  void set(Rule rule, bool broken = true) { bits_ |= uint32_t{broken} << static_cast<unsigned>(rule); }
  bool has(Rule rule) const { return bits_ >> static_cast<unsigned>(rule) & 1; }
  bool any() const { return bits_ != 0; }
  bool only(Rule rule) const { return bits_ == uint32_t{1} << static_cast<unsigned>(rule); }
  std::string text() const;  // "ratio+digits"

 private:
  uint32_t bits_ = 0;
};

// What the pairs of a corpus have in common.
struct PairKind {
  PairKind(const std::string& source_language, const std::string& target_language);
  std::vector<std::string> source_languages, target_languages;   // codes, one each; empty: unknown
  std::vector<std::string_view> source_scripts, target_scripts;  // empty: unknown
  double usual_ratio = 1;  // characters of targets over those of sources; 0: not known, so the ratio is not judged
};

// Asks the rules that look at the pair alone: all but held_out and duplicate.
BrokenRules broken_rules(const JudgedSide& source, const JudgedSide& target, const PairKind& kind, const CleanOptions& options);

}  // namespace starling
