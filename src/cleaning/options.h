// Which pairs of a corpus are kept: thresholds of the rules (cleaning/rules.h). 0, or false, turns a rule off, but for scores.
#pragma once

#include <array>
#include <cstdint>

#include "config/words.h"

namespace starling {

enum class CopyRule : uint8_t { off, pairs, targets };
constexpr auto words(CopyRule) { return std::array{"off", "pairs", "targets"}; }

inline constexpr int64_t kMostRepetitions = 20;  // that are counted

struct CleanOptions {
  bool before_training = false, repair = true, encoding = true, copy = true, addresses = true, placeholders = true, markup = true,
       language = true, held_out = true;
  int64_t max_words = 250, max_characters = 3000, max_word = 40, max_repetitions = 2;
  double max_ratio = 3, min_letters = 0.3, min_script = 0.5, max_similarity = 0.9, min_digits = 0.5;
  CopyRule copies = CopyRule::pairs;
  double near_copies = 0;
  int64_t max_same_source = 0, max_same_target = 0, best_words = 0;
  double min_score = kNoScore, best_share = 1;
  static constexpr double kNoScore = -1e9;  // every score is at least that
  bool operator==(const CleanOptions&) const = default;
};
template <class Visitor>
void visit(Visitor& v, CleanOptions& c) {
  v.field("before-training", c.before_training,
          "have `starling train` clean data.train first, into the run's directory (cleaned), and train on what is kept");
  v.field("repair", c.repair, "repair encodings, entities, spaces, composed and look-alike letters before anything is judged");
  v.field("encoding", c.encoding, "drop pairs with characters that were lost (U+FFFD) or are private, and with bytes that are not UTF-8");
  v.field("max-words", c.max_words, "drop pairs with a side longer than this many words", 0, 1000000);
  v.field("max-characters", c.max_characters, "drop pairs with a side longer than this many characters", 0, 10000000);
  v.field("max-ratio", c.max_ratio,
          "drop pairs whose longer side exceeds this many times the shorter by more than 10 characters, once the corpus's usual ratio is "
          "divided out",
          0.0, 1000.0);
  v.field("max-word", c.max_word, "drop pairs with a word longer than this many characters, addresses aside, where spaces divide words", 0,
          1000000);
  v.field("min-letters", c.min_letters,
          "drop pairs where less than this share of a side's characters, if 10 or more, are letters; spaces do not count", 0.0, 1.0);
  v.field("min-script", c.min_script, "drop pairs where less than this share of a side's letters is in its language's script", 0.0, 1.0);
  v.field("copy", c.copy, "drop pairs of at least four words whose sides have the same letters");
  v.field("max-similarity", c.max_similarity,
          "drop pairs of at least five words whose sides are at least this similar (1 - edit distance / length)", 0.0, 1.0);
  v.field("min-digits", c.min_digits, "drop pairs with more than three digits other than 0 whose sequences are less similar than this", 0.0,
          1.0);
  v.field("addresses", c.addresses, "drop pairs whose sides have different web addresses");
  v.field("placeholders", c.placeholders, "drop pairs whose sides have different variables (%s, {0}, $x)");
  v.field("markup", c.markup, "drop pairs with elements of HTML or XML on one side only");
  v.field("max-repetitions", c.max_repetitions, "drop pairs where only one side repeats a phrase this many times in a row", 0,
          kMostRepetitions);
  v.field("language", c.language, "drop pairs with a side that is clearly in another language, or in that of the other side");
  v.choice("copies", c.copies,
           "drop repeats of a pair, or of a target; case, spaces and punctuation do not count; the one with the best score (of "
           "data.train.0.scores) stays, or the first; off keeps all");
  v.field(
      "near-copies", c.near_copies,
      "drop pairs that are nearly copies of one that stays: on both sides (with copies: targets, on the target) the Jaccard similarity "
      "of their word bigrams is at least this; 0.8 allows one changed word in twenty, 0.6 one in ten; numbers, case and punctuation are "
      "ignored, sides of fewer than four words spared; the one with the best score stays, or the first; 0.5 to 1; 0 = off",
      0.0, 1.0);
  v.field("max-same-source", c.max_same_source, "drop pairs whose source so many earlier ones have; 0 = off", 0, 1000000000);
  v.field("max-same-target", c.max_same_target, "the same for targets", 0, 1000000000);
  v.field("min-score", c.min_score, "drop pairs with a lower score", CleanOptions::kNoScore, 1e9);
  v.field("best-share", c.best_share, "keep this share of the pairs that break no other rule: those with the best scores", 0.0, 1.0);
  v.field("best-words", c.best_words, "keep pairs with so many words of the target in all: those with the best scores; 0 = all", 0,
          int64_t{1} << 50);
  v.field("held-out", c.held_out,
          "drop pairs that are in valid.source and valid.target or valid.sets, long ones also if only one side matches");
}

}  // namespace starling
