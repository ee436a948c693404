#include "cleaning/pair_language.h"

#include <algorithm>
#include <set>

#include "cleaning/measures.h"
#include "text/detect_language.h"
#include "text/script.h"

namespace starling {
namespace {

// Returns the text of a side with spaces in place of the words that the other side has too, in either case: names, codes and formats, which
// are in no language. A word has letters of one script.
std::string without_shared_words(const JudgedSide& side, const JudgedSide& other) {
  const auto for_each_word = [](const std::u32string& text, const auto& visit) {
    const auto is_part = [](char32_t c) { return is_alphabetic(c) || character_class(c) == CharacterClass::number; };
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      std::string_view script;
      for (; end < text.size() && is_part(text[end]); ++end) {
        const std::string_view of_letter = letter_script(text[end]);
        if (!script.empty() && !of_letter.empty() && of_letter != script) break;
        if (!of_letter.empty()) script = of_letter;
      }
      if (end > i) visit(i, end - i);
      i = std::max(end, i + 1);
    }
  };
  const std::u32string lower = to_lower(side.characters), others = to_lower(other.characters);
  if (lower.size() != side.characters.size()) return std::string(side.text);  // places have changed, which is rare
  std::set<std::u32string_view> words;
  for_each_word(others, [&](size_t at, size_t length) { words.insert(std::u32string_view(others).substr(at, length)); });
  std::u32string text = side.characters;
  for_each_word(lower, [&](size_t at, size_t length) {
    if (words.contains(std::u32string_view(lower).substr(at, length))) text.replace(at, length, length, U' ');
  });
  return encode_utf8(text);
}

// Returns how many words have letters alone, but for a mark behind them.
size_t plain_words(std::string_view utf8) {
  const std::u32string text = decode_utf8(utf8);
  size_t count = 0;
  for (std::u32string_view word : split_on_space(text)) {
    if (word.size() > 1 && !is_alphabetic(word.back())) word.remove_suffix(1);
    count += std::all_of(word.begin(), word.end(), [](char32_t c) { return is_alphabetic(c) || c == U'\'' || c == U'’'; });
  }
  return count;
}

// Returns whether a side is clearly in another language without the words that the other side has. Fewer words than these are often taken
// for another language.
bool is_foreign(const JudgedSide& side, const std::string& rest, const std::vector<std::string>& own, std::string_view others) {
  constexpr size_t kFewestWords = 6;
  return (plain_words(rest) >= kFewestWords || std::any_of(side.characters.begin(), side.characters.end(), is_unspaced)) &&
         is_clearly_in_another_language(rest, own, others);
}

}  // namespace

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

bool has_words(const JudgedSide& side, size_t words) {
  constexpr size_t kLettersOfAWord = 3;  // where no spaces divide them
  return side.words.size() >= words ||
         (side.letters >= kLettersOfAWord * words && std::any_of(side.characters.begin(), side.characters.end(), is_unspaced));
}

bool is_no_name(const JudgedSide& side) {
  constexpr int64_t kSmallWords = 3;
  return std::count_if(side.words.begin(), side.words.end(), [](std::u32string_view word) {
           return is_alphabetic(word.front()) && letter_case(word.front()) != LetterCase::upper;
         }) >= kSmallWords;
}

double own_script(const JudgedSide& side, const JudgedSide& other, const std::vector<std::string_view>& scripts) {
  constexpr size_t kFewestLetters = 4;
  const double share = scripts.empty() ? 1 : script_share(side, scripts);
  if (share == 1 || &side == &other) return share;
  const std::string rest = without_shared_words(side, other);
  const JudgedSide alone(rest);
  return alone.letters < kFewestLetters ? 1 : std::max(share, script_share(alone, scripts));
}

bool other_language(const JudgedSide& s, const JudgedSide& t, const PairKind& kind) {
  const auto first = [](const std::vector<std::string>& languages) { return languages.empty() ? std::string_view() : languages.front(); };
  const std::string_view from = first(kind.source_languages), to = first(kind.target_languages);
  const bool source = !from.empty() && is_clearly_in_another_language(s.text, kind.source_languages, to),
             target = !to.empty() && is_clearly_in_another_language(t.text, kind.target_languages, from);
  if (!source && !target) return false;
  const std::string of_source = without_shared_words(s, t), of_target = without_shared_words(t, s);
  if (source && is_foreign(s, of_source, kind.source_languages, to)) return true;
  if (target && is_foreign(t, of_target, kind.target_languages, from)) return true;
  constexpr size_t kFewestOfBoth = 3;
  if (source && target && plain_words(of_source) >= kFewestOfBoth && plain_words(of_target) >= kFewestOfBoth) return true;  // exchanged
  const auto shares_half = [](const JudgedSide& side, const std::string& rest) {
    return is_no_name(side) && 2 * split_on_space(std::string_view(rest)).size() <= side.words.size();
  };
  return (source && shares_half(s, of_source)) || (target && shares_half(t, of_target));
}

bool other_language(const JudgedSide& line, const PairKind& kind) {
  return !kind.source_languages.empty() && is_foreign(line, std::string(line.text), kind.source_languages, {});
}

}  // namespace starling
