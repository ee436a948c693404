#include "cleaning/rules.h"

#include <algorithm>

#include "cleaning/measures.h"
#include "config/words.h"
#include "document/placeholders.h"
#include "text/detect_language.h"
#include "text/script.h"

namespace starling {
namespace {

constexpr double kFreeCharacters = 10;  // by which short sides may differ in length, whatever the ratio

bool lost_characters(const JudgedSide& side) {
  return std::any_of(side.characters.begin(), side.characters.end(),
                     [](char32_t c) { return c == 0xFFFD || (c >= 0xE000 && c <= 0xF8FF); });
}

bool is_long(const JudgedSide& side, const CleanOptions& o) {
  return (o.max_words > 0 && side.words.size() > static_cast<size_t>(o.max_words)) ||
         (o.max_characters > 0 && side.characters.size() > static_cast<size_t>(o.max_characters));
}

bool unequal_lengths(const JudgedSide& source, const JudgedSide& target, double usual, double most) {
  const double s = source.length() * usual, t = target.length();
  return std::max(s, t) > most * std::min(s, t) + kFreeCharacters;
}

// A word without an address in it, in a script with spaces.
bool has_long_word(const JudgedSide& side, size_t most) {
  return std::any_of(side.words.begin(), side.words.end(), [&](std::u32string_view word) {
    return word.size() > most && word.find(U"://") == word.npos && !word.starts_with(U"www.") && word.find(U'@') == word.npos &&
           std::none_of(word.begin(), word.end(), is_unspaced);
  });
}

size_t letters_of(const JudgedSide& side) {
  return static_cast<size_t>(std::count_if(side.characters.begin(), side.characters.end(), is_alphabetic));
}

bool few_letters(const JudgedSide& side, double least) {
  constexpr int64_t kFewest = 10;  // characters
  const auto shown = std::count_if(side.characters.begin(), side.characters.end(), [](char32_t c) { return !is_unicode_space(c); });
  return shown >= kFewest && letter_share(side, false) < least;
}

bool other_script(const JudgedSide& side, const std::vector<std::string_view>& scripts, double least) {
  return !scripts.empty() && script_share(side, scripts) < least;
}

// Names and titles are often the same in both languages, sentences never.
bool has_words(const JudgedSide& side, size_t words) {
  constexpr size_t kLettersOfAWord = 3;  // where no spaces divide them
  return side.words.size() >= words ||
         (letters_of(side) >= kLettersOfAWord * words && std::any_of(side.characters.begin(), side.characters.end(), is_unspaced));
}

bool other_digits(const JudgedSide& source, const JudgedSide& target, double least) {
  constexpr int64_t kFew = 3;
  int64_t digits = 0;
  for (const JudgedSide* side : {&source, &target})
    for (const char32_t c : side->characters) {
      digits += c >= '1' && c <= '9';
      if (c >= 0x80 && character_class(c) == CharacterClass::number) return false;  // numbers are written in other digits
    }
  return digits > kFew && digit_similarity(source, target) < least;
}

std::vector<std::u32string_view> sorted(std::vector<std::u32string_view> all) {
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::string_view> variables(const JudgedSide& side) {
  std::vector<std::string_view> all;
  if (side.text.find_first_of("%{$") == side.text.npos) return all;
  for (const Range& place : find_placeholders(side.text)) {
    const std::string_view text = side.text.substr(place.begin, place.end - place.begin);
    if (text.find_first_of("%{$") == 0) all.push_back(text);
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool repeats(const JudgedSide& side, int64_t times) {
  constexpr int64_t kShortest = 3, kLongest = 100;  // characters
  return repetitions(side, times, kShortest, kLongest) > 0;
}

// A short text is often taken for one in a third language, so then it must look like the other side's.
bool other_language(const JudgedSide& side, const std::vector<std::string>& own, const std::vector<std::string>& other) {
  if (own.empty() || !is_clearly_in_another_language(side.text, own, other.empty() ? std::string_view() : other.front())) return false;
  return has_words(side, 8) || (!other.empty() && !is_clearly_in_another_language(side.text, other, own.front()));
}

}  // namespace

std::string BrokenRules::text() const {
  std::string text;
  for (size_t i = 0; i < kRules; ++i)
    if (has(static_cast<Rule>(i))) text += (text.empty() ? "" : "+") + std::string(word(static_cast<Rule>(i)));
  return text;
}

PairKind::PairKind(const std::string& source_language, const std::string& target_language)
    : source_scripts(scripts_of_language(source_language)), target_scripts(scripts_of_language(target_language)) {
  if (!source_language.empty()) source_languages.push_back(source_language);
  if (!target_language.empty()) target_languages.push_back(target_language);
  constexpr std::string_view kDense[] = {"Hani", "Hira", "Hang", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"};
  const auto dense = [&](const std::vector<std::string_view>& scripts) {
    return !scripts.empty() && std::find(std::begin(kDense), std::end(kDense), scripts.front()) != std::end(kDense);
  };
  if (dense(source_scripts) != dense(target_scripts)) usual_ratio = 0;
}

BrokenRules broken_rules(const JudgedSide& s, const JudgedSide& t, const PairKind& kind, const CleanOptions& o) {
  BrokenRules broken;
  if (s.words.empty() || t.words.empty()) {
    broken.set(Rule::empty);
    return broken;
  }
  if (is_long(s, o) || is_long(t, o)) {  // what is quadratic in the length is not asked
    broken.set(Rule::length);
    return broken;
  }
  broken.set(Rule::encoding, o.encoding && (lost_characters(s) || lost_characters(t)));
  broken.set(Rule::ratio, o.max_ratio > 0 && kind.usual_ratio > 0 && unequal_lengths(s, t, kind.usual_ratio, o.max_ratio));
  broken.set(Rule::long_word,
             o.max_word > 0 && (has_long_word(s, static_cast<size_t>(o.max_word)) || has_long_word(t, static_cast<size_t>(o.max_word))));
  broken.set(Rule::letters, few_letters(s, o.min_letters) || few_letters(t, o.min_letters));
  broken.set(Rule::script, other_script(s, kind.source_scripts, o.min_script) || other_script(t, kind.target_scripts, o.min_script));
  broken.set(Rule::copy, o.copy && has_words(s, 4) && letters_of(s) > 0 && s.copy_key == t.copy_key);
  broken.set(Rule::similar, o.max_similarity > 0 && has_words(s, 5) && has_words(t, 5) && similarity(s, t) >= o.max_similarity);
  broken.set(Rule::digits, o.min_digits > 0 && other_digits(s, t, o.min_digits));
  broken.set(Rule::addresses, o.addresses && sorted(addresses(s)) != sorted(addresses(t)));
  broken.set(Rule::placeholders, o.placeholders && variables(s) != variables(t));
  broken.set(Rule::markup, o.markup && has_markup(s) != has_markup(t));
  broken.set(Rule::repetition, o.max_repetitions > 0 && repeats(s, o.max_repetitions) != repeats(t, o.max_repetitions));
  broken.set(Rule::language, o.language && (other_language(s, kind.source_languages, kind.target_languages) ||
                                            other_language(t, kind.target_languages, kind.source_languages)));
  return broken;
}

}  // namespace starling
