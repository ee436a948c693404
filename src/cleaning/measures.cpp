#include "cleaning/measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "text/script.h"

namespace starling {
namespace {

bool is_letter_of_ascii(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit_of_ascii(char32_t c) { return c >= '0' && c <= '9'; }

std::u32string digits_but_zero(const JudgedSide& side) {
  std::u32string digits;
  for (const char32_t c : side.characters)
    if (c >= '1' && c <= '9') digits += c;
  return digits;
}

struct Run {
  size_t a = 0, b = 0, length = 0;  // where it begins in each
};

// Returns the longest common run; of several the first in a, then in b. Takes time in proportion to the product of the lengths.
Run longest_common_run(std::u32string_view a, std::u32string_view b) {
  Run best;
  std::vector<uint32_t> ending(b.size() + 1);  // lengths of the common runs that end at a[i] and before b[j]
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = b.size(); j-- > 0;) {
      ending[j + 1] = a[i] == b[j] ? ending[j] + 1 : 0;
      const size_t length = ending[j + 1];
      if (length == 0) continue;
      const size_t at = i + 1 - length, other = j + 1 - length;
      if (length > best.length || (length == best.length && at == best.a && other < best.b)) best = {at, other, length};
    }
  }
  return best;
}

size_t matched(std::u32string_view a, std::u32string_view b) {
  const Run run = longest_common_run(a, b);
  if (run.length == 0) return 0;
  return run.length + matched(a.substr(0, run.a), b.substr(0, run.b)) + matched(a.substr(run.a + run.length), b.substr(run.b + run.length));
}

// For each character of a text a row of bits, one for each place where it stands.
class Places {
 public:
  explicit Places(std::u32string_view text) : blocks_((text.size() + 63) / 64), bits_(blocks_) {
    for (size_t j = 0; j < text.size(); ++j) bits_[row(text[j]) * blocks_ + j / 64] |= uint64_t{1} << (j % 64);
  }
  // Returns null for a character that is not there.
  const uint64_t* of(char32_t c) const {
    const size_t row = c < kDirect ? direct_[c] : found(c) == others_.end() ? 0 : found(c)->second;
    return row == 0 ? nullptr : &bits_[row * blocks_];
  }

 private:
  static constexpr char32_t kDirect = 0x250;  // Latin letters
  using Others = std::vector<std::pair<char32_t, size_t>>;
  Others::const_iterator found(char32_t c) const {
    return std::find_if(others_.begin(), others_.end(), [&](const auto& other) { return other.first == c; });
  }
  // Returns the row of a character, which is made if there is none. Row 0 is no character's.
  size_t row(char32_t c) {
    const size_t next = bits_.size() / blocks_;
    if (c < kDirect ? direct_[c] == 0 : found(c) == others_.end()) {
      if (c < kDirect)
        direct_[c] = static_cast<uint16_t>(next);
      else
        others_.emplace_back(c, next);
      bits_.resize(bits_.size() + blocks_);
      return next;
    }
    return c < kDirect ? direct_[c] : found(c)->second;
  }
  const size_t blocks_;
  std::array<uint16_t, kDirect> direct_{};
  Others others_;
  std::vector<uint64_t> bits_;
};

// Levenshtein's distance, 64 characters of the shorter text at a time (Hyyrö 2003).
size_t distance(std::u32string_view a, std::u32string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  if (b.empty()) return a.size();
  const size_t blocks = (b.size() + 63) / 64;
  const Places places(b);
  std::vector<uint64_t> more(blocks, ~uint64_t{0}), less(blocks);  // whether the distance grows or falls by one to the next row
  size_t result = b.size();
  const uint64_t last = uint64_t{1} << ((b.size() - 1) % 64);
  for (const char32_t c : a) {
    const uint64_t* const here = places.of(c);
    uint64_t carry_more = 1, carry_less = 0;
    for (size_t k = 0; k < blocks; ++k) {
      const uint64_t equal = (here ? here[k] : 0) | carry_less;
      const uint64_t x = (here ? here[k] : 0) | less[k];
      const uint64_t diagonal = (((equal & more[k]) + more[k]) ^ more[k]) | equal;
      uint64_t up = less[k] | ~(diagonal | more[k]), down = more[k] & diagonal;
      if (k + 1 == blocks) {
        if (up & last) ++result;
        if (down & last) --result;
      }
      const uint64_t next_more = up >> 63, next_less = down >> 63;
      up = (up << 1) | carry_more;
      down = (down << 1) | carry_less;
      more[k] = down | ~(x | up);
      less[k] = up & x;
      carry_more = next_more;
      carry_less = next_less;
    }
  }
  return result;
}

// Returns where the element that begins with `<` at `at` ends, or npos if it is none.
size_t end_of_element(std::u32string_view text, size_t at) {
  if (at + 1 >= text.size() || !is_letter_of_ascii(text[at + 1])) return text.npos;
  char32_t quote = 0;
  for (size_t i = at + 2; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if ((text[i] == '"' || text[i] == '\'') && text[i - 1] == '=') {
      quote = text[i];
    } else if (text[i] == '>') {
      return i + 1;
    } else if (text[i] == '<') {
      return text.npos;
    }
  }
  return text.npos;
}

bool begins_at(std::u32string_view text, size_t at, std::u32string_view with) { return text.substr(at, with.size()) == with; }

}  // namespace

double ratio_of_lengths(double a, double b) {
  if (a == b) return 1;
  return std::min(a, b) == 0 ? std::numeric_limits<double>::infinity() : std::max(a, b) / std::min(a, b);
}

double longest_word(const JudgedSide& side) {
  size_t longest = 0;
  for (const auto word : side.words) longest = std::max(longest, word.size());
  return static_cast<double>(longest);
}

double mean_word_length(const JudgedSide& side) {
  size_t characters = 0;
  for (const auto word : side.words) characters += word.size();
  return side.words.empty() ? 0 : static_cast<double>(characters) / static_cast<double>(side.words.size());
}

double letter_share(const JudgedSide& side, bool spaces) {
  int64_t letters = 0, all = 0;
  for (const char32_t c : side.characters) {
    if (!spaces && is_unicode_space(c)) continue;
    ++all;
    letters += is_alphabetic(c);
  }
  return all == 0 ? 1 : static_cast<double>(letters) / static_cast<double>(all);
}

double script_share(const JudgedSide& side, std::span<const std::string_view> scripts) {
  constexpr char32_t kLatin = 0x250;  // below, all letters are Latin
  const auto is_asked = [&](std::string_view script) { return std::find(scripts.begin(), scripts.end(), script) != scripts.end(); };
  const bool latin = is_asked("Latn");
  int64_t letters = 0, of_scripts = 0;
  for (const char32_t c : side.characters) {
    if (!is_alphabetic(c)) continue;
    ++letters;
    of_scripts += c < kLatin ? latin : is_asked(letter_script(c));
  }
  return letters == 0 ? 1 : static_cast<double>(of_scripts) / static_cast<double>(letters);
}

double sentence_marks(const JudgedSide& source, const JudgedSide& target) {
  const auto marks = [](const JudgedSide& side) {
    return static_cast<double>(std::count_if(side.characters.begin(), side.characters.end(),
                                             [](char32_t c) { return c == '.' || c == '?' || c == '!' || c == U'…'; }));
  };
  const double s = marks(source), t = marks(target);
  return -std::log(std::abs(s - t) + std::max(s - 1, 0.0) + std::max(t - 1, 0.0) + 1);
}

double digit_similarity(const JudgedSide& source, const JudgedSide& target) {
  const std::u32string a = digits_but_zero(source), b = digits_but_zero(target);
  if (a.empty() && b.empty()) return 1;
  constexpr size_t kMost = 200;
  if (const size_t longer = std::max(a.size(), b.size()); longer > kMost)
    return 1 - static_cast<double>(distance(a, b)) / static_cast<double>(longer);
  return 2 * static_cast<double>(matched(a, b)) / static_cast<double>(a.size() + b.size());
}

double common_run_share(const JudgedSide& source, const JudgedSide& target) {
  const double shorter = std::min(source.length(), target.length());
  return shorter == 0 ? 0 : static_cast<double>(longest_common_run(source.characters, target.characters).length) / shorter;
}

double similarity(const JudgedSide& source, const JudgedSide& target) {
  const double longer = std::max(source.length(), target.length());
  return longer == 0 ? 1 : 1 - static_cast<double>(distance(source.characters, target.characters)) / longer;
}

int64_t repetitions(const JudgedSide& side, int64_t times, int64_t shortest, int64_t longest) {
  const std::u32string_view text = side.characters;
  // How often the beginnings of parts come, by a hash of theirs: most come once, and so begin nothing that is repeated.
  const size_t beginning = static_cast<size_t>(std::min<int64_t>(shortest, 3));
  std::array<uint8_t, 1024> coming{};
  const auto count_at = [&](size_t at) -> uint8_t& {
    uint32_t hash = 0;
    for (const char32_t c : text.substr(at, beginning)) hash = (hash + c) * 0x9E3779B1u;
    return coming[hash >> 22];
  };
  constexpr uint8_t kMany = 255;  // and more, which are not counted
  for (size_t i = 0; i + beginning <= text.size(); ++i)
    if (uint8_t& count = count_at(i); count < kMany) ++count;
  const auto after_spaces = [&](size_t at) {
    while (at < text.size() && text[at] == ' ') ++at;
    return at;
  };
  int64_t most = 0;
  for (size_t i = 0; i + beginning <= text.size(); ++i) {
    uint8_t& count = count_at(i);
    const bool comes_again = count == kMany || count > std::max(times, most + 1);
    if (count < kMany) --count;
    if (!comes_again || is_unicode_space(text[i])) continue;
    for (auto length = static_cast<size_t>(shortest); length <= static_cast<size_t>(longest) && i + 2 * length <= text.size(); ++length) {
      const std::u32string_view part = text.substr(i, length);
      int64_t again = 0;
      for (size_t at = after_spaces(i + length); at < text.size() && text[at] == part[0] && begins_at(text, at, part);
           at = after_spaces(at + length))
        ++again;
      most = std::max(most, again);
    }
    if (most >= kMostRepetitions) return kMostRepetitions;
  }
  return most >= times ? most : 0;
}

bool has_markup(const JudgedSide& side) {
  const std::u32string_view text = side.characters;
  for (size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1))
    if (end_of_element(text, at) != text.npos) return true;
  return false;
}

std::vector<std::u32string_view> addresses(const JudgedSide& side) {
  constexpr std::u32string_view kEnds = U"\"'<>()[]{}，。；：！？、）」』»”’", kMarks = U".,;:!?";
  std::vector<std::u32string_view> found;
  for (const std::u32string_view word : side.words)
    for (size_t at = 0; at < word.size(); ++at) {
      if (at > 0 && is_alphabetic(word[at - 1])) continue;
      if (!begins_at(word, at, U"http://") && !begins_at(word, at, U"https://") && !begins_at(word, at, U"ftp://") &&
          !begins_at(word, at, U"www."))
        continue;
      size_t end = std::min(word.find_first_of(kEnds, at), word.size());
      const size_t next = end;
      while (end > at && is_one_of(word[end - 1], kMarks)) --end;
      found.push_back(word.substr(at, end - at));
      at = next;
    }
  return found;
}

double number_agreement(const JudgedSide& source, const JudgedSide& target) {
  const std::vector<std::u32string> a = numbers(source), b = numbers(target);
  std::vector<std::u32string> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return static_cast<double>(common.size() + 1) / static_cast<double>(a.size() + b.size() - 2 * common.size() + 1);
}

std::vector<std::u32string> numbers(const JudgedSide& side) {
  std::vector<std::u32string> found;
  const std::u32string_view text = side.characters;
  const auto digit_at = [&](size_t at) { return at < text.size() && is_digit_of_ascii(text[at]); };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!digit_at(i)) continue;
    const bool within = i > 0 && is_alphabetic(text[i - 1]);
    std::u32string number;
    if (i > 0 && (text[i - 1] == '-' || text[i - 1] == '+') && (i == 1 || is_unicode_space(text[i - 2]))) number = text[i - 1];
    while (text[i] == '0' && digit_at(i + 1)) ++i;
    for (; digit_at(i) || (i < text.size() && is_one_of(text[i], U".,:") && digit_at(i + 1)); ++i) number += digit_at(i) ? text[i] : U'.';
    if (!within && (i == text.size() || !is_alphabetic(text[i]))) found.push_back(std::move(number));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace starling
