// Makes one pass over each line. At a mark that may end a sentence, the marks and closing quotes that follow are included, and the words
// before and after decide. Looking backward and forward is bounded, so the time is linear.
#include "document/sentences.h"

#include <algorithm>
#include <cstdint>

#include "document/abbreviations.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kLongestWord = 32;      // bytes examined on each side of a full stop
constexpr size_t kMostOpening = 8;       // marks that may open a sentence
constexpr size_t kLongestBracket = 300;  // bytes within East Asian brackets in which marks do not end a sentence

enum class Mark { none, stop, dots, question, wide };  // wide: ends a sentence without a space after it

Mark mark(char32_t c) {
  if (c < 0x80) return c == '.' ? Mark::stop : c == '!' || c == '?' ? Mark::question : Mark::none;
  switch (c) {
    case 0x2026:  // ellipsis
      return Mark::dots;
    case 0x037E:
    case 0x0589:
    case 0x061F:
    case 0x06D4:
    case 0x0700:
    case 0x0701:
    case 0x0702:
    case 0x166E:
    case 0x1803:
    case 0x203D:
      return Mark::question;  // Greek, Armenian, Arabic, Urdu, Syriac, Cree, Mongolian; interrobang
    case 0x3002:
    case 0xFF01:
    case 0xFF1F:
    case 0xFF61:
    case 0xFF0E:
    case 0x203C:
    case 0x2047:
    case 0x2048:
    case 0x2049:
    case 0x0964:
    case 0x0965:
    case 0x104B:
    case 0x17D4:
    case 0x17D5:
    case 0x1362:
    case 0x1367:
      return Mark::wide;  // Chinese and Japanese, dandas, Burmese, Khmer, Ethiopic
    default:
      return Mark::none;
  }
}

constexpr std::u32string_view kClosing =
    U")]}\"'\u2019\u201D\u201C\u00BB\u00AB\u203A\u2039\u2018\uFF09\u300D\u300F\u3011\u3009\u300B\uFF63\uFF02\u3015";
constexpr std::u32string_view kWideClosing = U")]}\"'\u2019\u201D\u00BB\uFF09\u300D\u300F\u3011\u3009\u300B\uFF63\uFF02\u3015";
constexpr std::u32string_view kOpening =
    U"([{\"'\u2018\u2019\u201C\u201D\u201E\u201A\u00AB\u00BB\u2039\u203A\u00BF\u00A1-\u2013\u2014*_#\u2022\uFF08\u300C\u300E";
constexpr std::u32string_view kQuotes = U"\"'\u2019\u201D\u201C\u00BB\u00AB\u203A\u2039\u2018)\u300D\u300F\uFF09";
constexpr std::u32string_view kEastOpening = U"\u300C\u300E\uFF08\u201C\u2018\u3010\u300A\u3008\uFF62";
constexpr std::u32string_view kEastClosing = U"\u300D\u300F\uFF09\u201D\u2019\u3011\u300B\u3009\uFF63";
constexpr std::u32string_view kGoesOn = U",;:\u3001\uFF0C\uFF1B\uFF1A\u060C\u061B\u2026";  // no sentence begins with these

bool is_east_asian(char32_t c) {
  return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x3134F);
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  const bool invisible = (c >= 0x80 && c < 0xA0) || c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
                         (c >= 0x2060 && c <= 0x206F) || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || c >= 0xE0000;
  if (invisible || is_unicode_space(c)) return false;
  const CharacterClass what = character_class(c);
  return what == CharacterClass::other || what == CharacterClass::number;
}

bool is_digit(char32_t c) { return (c >= '0' && c <= '9') || (c >= 0xFF10 && c <= 0xFF19); }

// Returns whether a character counts as a line break: line breaks, tabs and information separators.
bool ends_line(char32_t c) { return (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0x2028 || c == 0x2029 || (c >= 0x1C && c <= 0x1E); }

// Splits a line into sentences.
class Line {
 public:
  Line(std::string_view line, const AbbreviationRules& rules) : line_(line), rules_(rules) {}

  // Calls found(begin, end) for each sentence, bytes of the line.
  template <class Found>
  void split(Found found) {
    protect_brackets();
    size_t begin = after_bullet(skip_space(0));
    for (size_t at = begin; at < line_.size();) {
      const auto [c, length] = code(at);
      if (mark(c) == Mark::none) {
        at += length;
        continue;
      }
      size_t end = 0;
      if (ends(begin, at, end)) {
        found(begin, end);
        begin = skip_space(end);
        at = begin;
      } else {
        at = std::max(end, at + length);
      }
    }
    size_t end = line_.size();
    end = begin + without_trailing_space(line_.substr(begin, end - begin)).size();
    if (begin < end) found(begin, end);
  }

 private:
  struct Code {
    char32_t c;
    size_t length;
  };
  // Decodes the character at `at`. A malformed byte is one replacement character. Invisible characters, such as direction marks, belong to
  // the character that they follow.
  Code code(size_t at) const {
    Code found = code_alone(at);
    for (Code next = code_alone(at + found.length); next.length > 1 && is_default_ignorable(next.c); next = code_alone(at + found.length))
      found.length += next.length;
    return found;
  }
  Code code_alone(size_t at) const {
    if (at >= line_.size()) return {0, 0};
    const auto [value, length] = decode_utf8_at(line_.substr(at));
    return length == 0 ? Code{0xFFFD, 1} : Code{value, static_cast<size_t>(length)};
  }
  size_t place_before(size_t at) const {
    size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && is_continuation(static_cast<unsigned char>(line_[begin]))) --begin;
    return begin;
  }
  Code code_before(size_t at) const {
    size_t begin = place_before(at);
    while (begin > 0 && code_alone(begin).length > 1 && is_default_ignorable(code_alone(begin).c)) begin = place_before(begin);
    const Code found = code(begin);
    return begin + found.length == at ? found : Code{0xFFFD, 1};
  }
  size_t skip_space(size_t at) const {
    for (Code c = code(at); c.length > 0 && is_unicode_space(c.c); c = code(at)) at += c.length;
    return at;
  }
  // Returns the position after the marker of a list item or quotation (such as "-" or ">") and its spaces.
  size_t after_bullet(size_t at) const {
    size_t end = at;
    for (Code c = code(end); c.length > 0 && end - at < kLongestWord && is_one_of(c.c, U"-*+>#\u2022\u00B7\u2013\u2014\u25AA\u25CF\u2023");
         c = code(end))
      end += c.length;
    return end > at && is_unicode_space(code(end).c) ? skip_space(end) : at;
  }

  // Finds pairs of East Asian brackets close to each other; marks within them do not end a sentence.
  void protect_brackets() {
    std::vector<std::pair<size_t, char32_t>> open;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t at = 0; at < line_.size();) {
      const auto [c, length] = code(at);
      if (c >= 0x2018 && is_one_of(c, kEastOpening)) {
        open.emplace_back(at, kEastClosing[kEastOpening.find(c)]);
      } else if (c >= 0x2018 && !open.empty() && open.back().second == c) {
        if (at - open.back().first <= kLongestBracket) pairs.emplace_back(open.back().first, at);
        open.pop_back();
      }
      at += length;
    }
    std::sort(pairs.begin(), pairs.end());
    for (const auto& p : pairs)
      if (protected_.empty() || p.first > protected_.back().second) protected_.push_back(p);
  }
  bool is_protected(size_t at) const {
    const auto after = std::lower_bound(protected_.begin(), protected_.end(), std::pair(at, size_t{0}));
    return after != protected_.begin() && at <= after[-1].second;
  }

  // Returns whether the sentence ends with the marks at `at`; sets `end` to the position after them and the closing characters that follow.
  bool ends(size_t begin, size_t at, size_t& end) const {
    Mark last = Mark::none;
    size_t stops = 0;
    end = at;
    for (Code c = code(end); c.length > 0; c = code(end)) {
      const Mark m = mark(c.c);
      if (m == Mark::none) break;
      if (m == Mark::stop) ++stops;
      if (last != Mark::wide && (m != Mark::stop || last == Mark::none)) last = m;
      end += c.length;
    }
    if (last == Mark::stop && stops > 1) last = Mark::dots;
    const size_t marks_end = end;
    bool quoted = false;
    const std::u32string_view closing = last == Mark::wide ? kWideClosing : kClosing;
    for (Code c = code(end); c.length > 0 && is_one_of(c.c, closing); c = code(end)) {
      quoted |= is_one_of(c.c, kQuotes);
      end += c.length;
    }
    end = after_spaced_quote(end, quoted);
    if (end == line_.size()) return true;
    const Code next = code(end);
    const bool space = is_unicode_space(next.c);
    if (last == Mark::wide) return ends_wide(at, end, quoted);
    if (!space) {
      const bool east = last != Mark::dots && at > begin && is_east_asian(code_before(at).c) && is_east_asian(next.c);
      return east && !is_protected(end);
    }
    return ends_before_space(begin, at, end, last, quoted, marks_end);
  }

  // French puts a space before its closing quotation mark.
  size_t after_spaced_quote(size_t end, bool& quoted) const {
    const Code space = code(end);
    if (space.c != ' ' && space.c != 0xA0 && space.c != 0x202F) return end;
    const Code quote = code(end + space.length);
    if (quote.c != 0xBB && quote.c != 0x203A) return end;
    const size_t after = end + space.length + quote.length;
    const Code next = code(after);
    if (next.length > 0 && is_word(next.c)) return end;  // it opens
    quoted = true;
    return after;
  }

  bool ends_wide(size_t at, size_t end, bool quoted) const {
    if (is_protected(end)) return false;
    const char32_t next = code(end).c;
    if (is_one_of(next, kGoesOn)) return false;
    if (at > 0 && code(at).c == 0xFF0E && is_digit(code_before(at).c) && is_digit(next)) return false;  // a full-width decimal point
    const bool hiragana = next >= 0x3040 && next <= 0x309F;
    return !(quoted && hiragana);  // the sentence continues after the quotation
  }

  bool ends_before_space(size_t begin, size_t at, size_t end, Mark last, bool quoted, size_t marks_end) const {
    size_t next = skip_space(end);
    if (next == line_.size()) return true;
    if (is_one_of(code(next).c, kGoesOn) || mark(code(next).c) != Mark::none) return false;
    const bool dash = is_one_of(code(next).c, U"-\u2013\u2014");
    for (size_t i = 0; i < kMostOpening && is_one_of(code(next).c, kOpening); ++i) next += code(next).length;
    if (dash) next = skip_space(next);
    const Code c = code(next);
    const bool small = letter_case(c.c) == LetterCase::lower;
    if (last == Mark::question) return !(small && (quoted || dash));
    if (small) return false;
    if (last == Mark::dots || marks_end != end) return true;
    return !belongs_to_word(begin, at, next);
  }

  // Returns the beginning of the word that ends before `at`, including the full stops inside it.
  size_t word_begin(size_t begin, size_t at) const {
    size_t word = at;
    while (word > begin && at - word < kLongestWord) {
      const Code c = code_before(word);
      const bool inside = is_word(c.c) || c.c == '.' || c.c == 0xB7 || c.c == 0xA7 || c.c == 0x2116;
      if (!inside) break;
      word -= c.length;
    }
    return word;
  }

  // Returns whether the full stop at `at` belongs only to the word before it and does not end the sentence.
  bool belongs_to_word(size_t begin, size_t at, size_t next) const {
    const size_t start = word_begin(begin, at);
    const std::string_view word = line_.substr(start, at - start);
    if (word.empty()) return false;
    size_t next_end = next;
    for (Code c = code(next_end); c.length > 0 && next_end - next < kLongestWord && is_word(c.c); c = code(next_end)) next_end += c.length;
    const std::string_view next_word = line_.substr(next, next_end - next);
    const char32_t n = code(next).c;
    const bool number_next = is_digit(n), capital_next = letter_case(n) == LetterCase::upper;
    const bool initial_next = shape_of(next_word) == Shape::letter && code(next_end).c == '.';
    const bool begins = capital_next ? rules_.begins_sentences(next_word) && !initial_next : !number_next;

    const Shape shape = shape_of(word);
    const bool counts = shape == Shape::number || shape == Shape::letter || shape == Shape::roman;
    if (start == begin && word.size() <= 4 && counts) return true;  // "1. Open the door."
    if (shape == Shape::number) return rules_.ordinals() && word.size() <= 2 && (number_next || (capital_next && !begins));
    const Abbreviation known = rules_.of(word);
    if (known == Abbreviation::goes_on) return true;
    if (known == Abbreviation::before_number && (number_next || shape_of(next_word) == Shape::roman)) return true;
    if (known == Abbreviation::may_end) return !begins && (number_next || rules_.knows_beginnings());
    if (shape == Shape::letter) return !begins || follows_small_letter(begin, start);
    if (shape == Shape::letters) return !begins || letter_case(code(start).c) == LetterCase::lower;
    if (shape == Shape::roman) return rules_.ordinals() && capital_next && !begins;
    return false;
  }

  // Returns whether the word is like the "B." of "z. B."
  bool follows_small_letter(size_t begin, size_t start) const {
    if (start < begin + 3 || line_[start - 1] != ' ' || line_[start - 2] != '.') return false;
    const size_t before = word_begin(begin, start - 2);
    const std::string_view word = line_.substr(before, start - 2 - before);
    return shape_of(word) == Shape::letter && letter_case(code(before).c) == LetterCase::lower;
  }

  enum class Shape { word, number, letter, letters, roman };  // 19; J; U.S; XIV

  static Shape shape_of(std::string_view word) {
    size_t letters = 0, longest = 0, run = 0, digits = 0;
    bool roman = true;
    for (size_t i = 0; i < word.size();) {
      const auto [c, length] = decode_utf8_at(word.substr(i));
      i += static_cast<size_t>(std::max(length, 1));
      roman &= is_one_of(c, U"IVXLCDM");
      if (c == '.') {
        run = 0;
      } else if (is_digit(c)) {
        ++digits;
      } else {
        ++letters;
        longest = std::max(longest, ++run);
      }
    }
    if (letters == 0) return digits > 0 ? Shape::number : Shape::word;
    if (digits > 0) return Shape::word;
    if (letters == 1) return Shape::letter;
    if (longest == 1) return Shape::letters;
    return roman ? Shape::roman : Shape::word;
  }

  std::string_view line_;
  const AbbreviationRules& rules_;
  std::vector<std::pair<size_t, size_t>> protected_;  // sorted, not nested
};

}  // namespace

bool has_letter(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto [c, length] = decode_utf8_at(text.substr(i));
    if (length > 0 && is_word(c) && character_class(c) != CharacterClass::number) return true;
    i += static_cast<size_t>(std::max(length, 1));
  }
  return false;
}

std::vector<TextPiece> split_sentences(std::string_view text, std::string_view language) {
  const AbbreviationRules rules(language);
  std::vector<TextPiece> pieces;
  size_t done = 0;  // bytes that are in pieces
  const auto add_line = [&](size_t begin, size_t end) {
    Line(text.substr(begin, end - begin), rules).split([&](size_t from, size_t to) {
      from += begin;
      to += begin;
      if (!has_letter(text.substr(from, to - from))) return;
      if (from > done) pieces.push_back({text.substr(done, from - done), false});
      pieces.push_back({text.substr(from, to - from), true});
      done = to;
    });
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [c, length] = decode_utf8_at(text.substr(at));
    const size_t next = at + static_cast<size_t>(std::max(length, 1));
    if (length > 0 && ends_line(c)) {
      add_line(begin, at);
      begin = next;
    }
    at = next;
  }
  add_line(begin, text.size());
  if (done < text.size()) pieces.push_back({text.substr(done), false});
  return pieces;
}

}  // namespace starling
