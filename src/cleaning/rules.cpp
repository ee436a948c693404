#include "cleaning/rules.h"

#include <cmath>
#include <utility>

#include "config/words.h"

namespace starling {

std::string RuleSet::text() const {
  std::string text;
  for (size_t i = 0; i < kRules; ++i)
    if (has(static_cast<Rule>(i))) text += (text.empty() ? "" : "+") + std::string(word(static_cast<Rule>(i)));
  return text;
}

Rules::Rules(const CleanOptions& o) : repetitions_(static_cast<int32_t>(o.max_repetitions)) {
  using enum Threshold::Breaks;
  const CleanOptions standard;
  const auto add = [&](Rule rule, Measure measure, std::string_view key, Threshold::Breaks breaks, auto CleanOptions::*option,
                       double unit) {
    const auto value = static_cast<double>(o.*option > 0 ? o.*option : standard.*option);
    thresholds_.push_back({rule, measure, key, breaks, static_cast<int32_t>(std::llround(value / unit)), unit, o.*option > 0});
  };
  add(Rule::length, Measure::words, "max-words", above, &CleanOptions::max_words, 1);
  add(Rule::length, Measure::characters, "max-characters", above, &CleanOptions::max_characters, 1);
  add(Rule::ratio, Measure::ratio, "max-ratio", above, &CleanOptions::max_ratio, kPart);
  add(Rule::long_word, Measure::long_word, "max-word", above, &CleanOptions::max_word, 1);
  add(Rule::letters, Measure::letters, "min-letters", below, &CleanOptions::min_letters, kPart);
  add(Rule::script, Measure::script, "min-script", below, &CleanOptions::min_script, kPart);
  add(Rule::similar, Measure::similarity, "max-similarity", at_least, &CleanOptions::max_similarity, kPart);
  add(Rule::digits, Measure::digits, "min-digits", below, &CleanOptions::min_digits, kPart);
  marks_.set(Rule::empty);
  for (const auto& [rule, asked] : {std::pair(Rule::encoding, o.encoding),
                                    {Rule::copy, o.copy},
                                    {Rule::addresses, o.addresses},
                                    {Rule::placeholders, o.placeholders},
                                    {Rule::markup, o.markup},
                                    {Rule::language, o.language},
                                    {Rule::held_out, o.held_out}})
    marks_.set(rule, asked);
}

RuleSet Rules::broken(const PairMeasures& pair) const {
  RuleSet broken(pair.marks.bits() & marks_.bits());
  if (broken.has(Rule::empty)) return broken;
  for (const Threshold& t : thresholds_) {
    const int32_t value = pair[t.measure];
    broken.set(t.rule, t.asked && (t.breaks == Threshold::Breaks::below   ? value < t.limit
                                   : t.breaks == Threshold::Breaks::above ? value > t.limit
                                                                          : value >= t.limit));
  }
  broken.set(Rule::repetition, repetitions_ > 0 && pair[Measure::repeated] >= repetitions_ && pair[Measure::both_repeat] < repetitions_);
  return broken;
}

}  // namespace starling
