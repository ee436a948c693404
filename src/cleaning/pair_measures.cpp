#include "cleaning/pair_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/ascii.h"
#include "cleaning/measures.h"
#include "document/placeholders.h"
#include "text/script.h"

namespace starling {
namespace {

constexpr double kFreeCharacters = 10;  // by which short sides may differ in length, whatever the ratio
constexpr int32_t kWhole = 10000;       // 1, in units of kPart

int32_t parts_of(double value) { return static_cast<int32_t>(std::llround(std::min(value, 1e5) / kPart)); }
int32_t counted_as(size_t count) { return static_cast<int32_t>(std::min<size_t>(count, 1u << 30)); }

// Returns whether characters were lost, or bytes of UTF-8 are left as Latin letters: with their second ones, at least twice ("ÐÐ¾ÑÐºÐ²Ð°"),
// or touching letters of the script that they are of ("ÑЃлово", "ãƒ本").
bool lost_characters(const JudgedSide& side) {
  constexpr std::pair<std::string_view, std::u32string_view> kFirstBytes[] = {
      {"Cyrl", U"ÐÑ"}, {"Grek", U"ÎÏ"}, {"Arab", U"ØÙ"}, {"Hira", U"ãæåç"}, {"Kana", U"ãæåç"}, {"Hani", U"ãæåç"}, {"Hang", U"ìêëí"}};
  const auto is_first_byte = [&](char32_t c, char32_t neighbour) {
    const std::string_view script = letter_script(neighbour);
    return std::any_of(std::begin(kFirstBytes), std::end(kFirstBytes),
                       [&](const auto& bytes) { return bytes.first == script && is_one_of(c, bytes.second); });
  };
  constexpr int kFewestPairs = 2;
  const std::u32string& text = side.characters;
  int byte_pairs = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (is_one_of(c, U"ÂÃÐÑ") && i + 1 < text.size() && text[i + 1] > 0xA0 && text[i + 1] < 0xC0 && ++byte_pairs == kFewestPairs)
      return true;
    if (c < 0xC0) continue;
    if (c == 0xFFFD || (c >= 0xE000 && c <= 0xF8FF)) return true;
    if (c < 0x100 && ((i > 0 && is_first_byte(c, text[i - 1])) || (i + 1 < text.size() && is_first_byte(c, text[i + 1])))) return true;
  }
  return false;
}

// The characters of the longest word that has no address in it and is in a script with spaces.
size_t longest_plain_word(const JudgedSide& side) {
  size_t longest = 0;
  for (const std::u32string_view word : side.words)
    if (word.size() > longest && word.find(U"://") == word.npos && !word.starts_with(U"www.") && word.find(U'@') == word.npos &&
        std::none_of(word.begin(), word.end(), is_unspaced))
      longest = word.size();
  return longest;
}

// The share of characters that are letters; 1 of a few characters.
double letters_shown(const JudgedSide& side) {
  constexpr size_t kFewest = 10;  // characters
  return side.shown < kFewest ? 1 : static_cast<double>(side.letters) / static_cast<double>(side.shown);
}

// Elements on one side only. What stands between angle brackets in the letters of both languages is a name of something, not markup.
bool other_markup(const JudgedSide& source, const JudgedSide& target) {
  const auto has_name = [](const JudgedSide& side) {
    const std::u32string& text = side.characters;
    for (size_t at = text.find(U'<'); at != text.npos; at = text.find(U'<', at + 1))
      if (at + 1 < text.size() && is_alphabetic(text[at + 1]) && text.find(U'>', at) != text.npos) return true;
    return false;
  };
  return has_markup(source) != has_markup(target) && !(has_name(source) && has_name(target));
}

// Returns the text without the positions of arguments (%2$s), which are no numbers of the text, and with the hours of afternoons (3:05 pm)
// as they are where days have 24.
std::string comparable_numbers(std::string_view utf8) {
  const auto digits_at = [&](size_t at) {
    size_t end = at;
    while (end < utf8.size() && is_ascii_digit(utf8[end])) ++end;
    return end - at;
  };
  // The bytes of ":05 pm" behind an hour; 0 if something else stands there.
  const auto afternoon_at = [&](size_t at) -> size_t {
    if (at >= utf8.size() || (utf8[at] != ':' && utf8[at] != '.') || digits_at(at + 1) != 2) return 0;
    size_t end = at + 3;
    while (end < utf8.size() && utf8[end] == ' ') ++end;
    const std::string_view mark = utf8.substr(end, 4);
    return mark.starts_with("pm") || mark.starts_with("PM") || mark.starts_with("p.m") || mark.starts_with("P.M") ? end - at : 0;
  };
  std::string text;
  for (size_t i = 0; i < utf8.size();) {
    const size_t digits = digits_at(i), behind = i + digits;
    if (digits > 0 && i > 0 && utf8[i - 1] == '%' && behind < utf8.size() && utf8[behind] == '$') {
      i = behind;
    } else if (digits > 0 && digits <= 2 && afternoon_at(behind) > 0) {
      const int hour = std::stoi(std::string(utf8.substr(i, digits)));
      text += std::to_string(hour < 12 ? hour + 12 : hour);
      i = behind;
    } else {
      text += utf8.substr(i, std::max<size_t>(digits, 1));
      i += std::max<size_t>(digits, 1);
    }
  }
  return text;
}

// How alike the digits are; 1 if they are few or some are written in other digits than ASCII's.
double digits_alike(const JudgedSide& source, const JudgedSide& target) {
  constexpr int64_t kFew = 3;
  int64_t digits = 0;
  for (const JudgedSide* side : {&source, &target})
    for (const char32_t c : side->characters) {
      digits += c >= '1' && c <= '9';
      if (c >= 0x80 && !is_alphabetic(c) && character_class(c) == CharacterClass::number) return 1;
    }
  if (digits <= kFew) return 1;
  const double similarity = digit_similarity(source, target);
  if (similarity == 1) return 1;
  return std::max(similarity, digit_similarity(JudgedSide(comparable_numbers(source.text)), JudgedSide(comparable_numbers(target.text))));
}

std::vector<std::u32string_view> sorted(std::vector<std::u32string_view> all) {
  std::sort(all.begin(), all.end());
  return all;
}

bool other_addresses(const JudgedSide& source, const JudgedSide& target) {
  const auto may_have = [](const JudgedSide& side) {
    return side.text.find("://") != side.text.npos || side.text.find("www.") != side.text.npos;
  };
  return (may_have(source) || may_have(target)) && sorted(addresses(source)) != sorted(addresses(target));
}

std::vector<std::string> variables(const JudgedSide& side) {
  std::vector<std::string> all;
  if (side.text.find_first_of("%{$") == side.text.npos) return all;
  std::string text(side.text);
  std::replace(text.begin(), text.end(), '`', ' ');  // old messages quote `%s' so, which is no code
  for (const Range& place : find_placeholders(text))
    if (std::string variable = text.substr(place.begin, place.end - place.begin); variable.find_first_of("%{$") == 0) {
      // %2$s is %s in another place.
      if (const size_t dollar = variable.find('$'); variable[0] == '%' && dollar != variable.npos) variable.erase(1, dollar);
      all.push_back(std::move(variable));
    }
  std::sort(all.begin(), all.end());
  return all;
}

int32_t repeated(const JudgedSide& side, int64_t asked) {
  constexpr int64_t kShortest = 3, kLongest = 100;  // characters
  return counted_as(static_cast<size_t>(repetitions(side, asked > 0 ? std::min<int64_t>(asked, 2) : 2, kShortest, kLongest)));
}

PairMeasures nothing_measured() {
  PairMeasures pair;
  for (const Measure m : {Measure::letters, Measure::script, Measure::digits}) pair.values[static_cast<size_t>(m)] = kWhole;
  return pair;
}

// What is measured of each side by itself.
class Measuring {
 public:
  Measuring(const PairKind& kind, const CleanOptions& options) : kind_(kind), o_(options) { pair = nothing_measured(); }
  void set(Measure m, int32_t value) { pair.values[static_cast<size_t>(m)] = value; }
  // Returns whether the sides are neither empty nor too long.
  bool lengths(const JudgedSide& s, const JudgedSide& t) {
    const size_t words = std::max(s.words.size(), t.words.size()), characters = std::max(s.characters.size(), t.characters.size());
    set(Measure::words, counted_as(words));
    set(Measure::characters, counted_as(characters));
    pair.marks.set(Rule::empty, s.words.empty() || t.words.empty());
    const auto above = [](size_t value, int64_t most) { return most > 0 && value > static_cast<size_t>(most); };
    return !pair.marks.has(Rule::empty) && !above(words, o_.max_words) && !above(characters, o_.max_characters);
  }
  void sides(const JudgedSide& s, const JudgedSide& t) {
    set(Measure::long_word, counted_as(std::max(longest_plain_word(s), longest_plain_word(t))));
    set(Measure::letters, parts_of(std::min(letters_shown(s), letters_shown(t))));
    set(Measure::script, parts_of(std::min(own_script(s, t, kind_.source_scripts), own_script(t, s, kind_.target_scripts))));
    pair.marks.set(Rule::encoding, lost_characters(s) || lost_characters(t));
  }
  PairMeasures pair;

 private:
  const PairKind& kind_;
  const CleanOptions& o_;
};

}  // namespace

PairMeasures measured(const JudgedSide& s, const JudgedSide& t, const PairKind& kind, const CleanOptions& o) {
  Measuring m(kind, o);
  if (!m.lengths(s, t)) return m.pair;
  m.sides(s, t);
  if (kind.usual_ratio > 0) {
    const double source = s.length() * kind.usual_ratio, target = t.length();
    m.set(Measure::ratio, parts_of(std::max(0.0, std::max(source, target) - kFreeCharacters) / std::min(source, target)));
  }
  if (has_words(s, 5) && has_words(t, 5)) m.set(Measure::similarity, parts_of(similarity(s, t)));
  m.set(Measure::digits, parts_of(digits_alike(s, t)));
  const auto [both, one] = std::minmax({repeated(s, o.max_repetitions), repeated(t, o.max_repetitions)});
  m.set(Measure::repeated, one);
  m.set(Measure::both_repeat, both);
  m.pair.marks.set(Rule::copy, s.letters > 0 && s.copy_key == t.copy_key && has_words(s, 4) && (is_no_name(s) || is_no_name(t)));
  m.pair.marks.set(Rule::addresses, other_addresses(s, t));
  m.pair.marks.set(Rule::placeholders, variables(s) != variables(t));
  m.pair.marks.set(Rule::markup, other_markup(s, t));
  if (o.language) m.pair.marks.set(Rule::language, other_language(s, t, kind));
  return m.pair;
}

PairMeasures measured(const JudgedSide& line, const PairKind& kind, const CleanOptions& o) {
  Measuring m(kind, o);
  if (!m.lengths(line, line)) return m.pair;
  m.sides(line, line);
  m.set(Measure::repeated, repeated(line, o.max_repetitions));
  m.pair.marks.set(Rule::markup, has_markup(line));
  if (o.language) m.pair.marks.set(Rule::language, other_language(line, kind));
  return m.pair;
}

bool is_surely_too_long(std::string_view utf8, const CleanOptions& o) {
  constexpr size_t kMostBytes = 4;  // of a character
  return o.max_characters > 0 && utf8.size() / kMostBytes > static_cast<size_t>(o.max_characters);
}

PairMeasures measured_as_too_long() {
  PairMeasures pair = nothing_measured();
  pair.values[static_cast<size_t>(Measure::characters)] = std::numeric_limits<int32_t>::max();
  return pair;
}

}  // namespace starling
