// Scans the text once; at each position it tries every kind of placeholder, each with a bound on how far it looks.
#include "document/placeholders.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/ascii.h"
#include "document/placeholder_words.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kLongestVariable = 100;  // bytes
constexpr size_t kLongestPart = 100;      // bytes of a user name, a tag, or the part of an address before @

// Bytes of other scripts' letters count as letters; where it matters, their punctuation is excluded by hand.
bool is_ascii_name(unsigned char c) { return is_ascii_letter_or_digit(c) || c == '_'; }

// Emoji, and the arrows, technical signs, shapes and dingbats that are used like them.
bool is_picture(char32_t c) {
  return is_emoji(c) || (c >= 0x2190 && c <= 0x21FF) || (c >= 0x2300 && c <= 0x23FF) || (c >= 0x25A0 && c <= 0x27BF) ||
         (c >= 0x2B00 && c <= 0x2BFF) || (c >= 0x1F000 && c <= 0x1FAFF);
}
// What may follow an emoji and belong to it: the joiner, both variation selectors, the keycap, tags of flags.
bool joins_emoji(char32_t c) { return c == 0x200D || c == 0xFE0E || c == 0xFE0F || c == 0x20E3 || (c >= 0xE0020 && c <= 0xE007F); }

class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text) {}

  std::vector<Range> find() {
    std::vector<Range> found;
    for (size_t at = 0; at < text_.size();) {
      size_t end = end_at(at);
      if (end < text_.size() && is_continuation(byte(end))) end = at;
      if (end > at) found.push_back({static_cast<int64_t>(at), static_cast<int64_t>(end)});
      at = std::max(end, at + 1);
    }
    return found;
  }

 private:
  unsigned char byte(size_t at) const { return at < text_.size() ? static_cast<unsigned char>(text_[at]) : 0; }
  unsigned char before(size_t at) const { return at > 0 ? byte(at - 1) : 0; }
  // Whether a word could go on there: quotes and other marks end it, and so do letters of scripts that are written without spaces.
  bool letter_at(size_t at) const {
    const unsigned char c = byte(at);
    return c < 0x80 ? is_ascii_name(c) : is_letter(decode_utf8_at(text_.substr(at)).value);
  }
  bool letter_before(size_t at) const {
    if (before(at) < 0x80) return is_ascii_name(before(at));
    size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && is_continuation(byte(begin))) --begin;
    return is_letter(decode_utf8_at(text_.substr(begin)).value);
  }
  static bool is_letter(char32_t c) {
    constexpr char32_t kThai = 0x0E00, kTibetan = 0x0F00, kEastAsia = 0x2E80;
    return c < kEastAsia && (c < kThai || c >= kTibetan) && character_class(c) == CharacterClass::other && !is_unicode_space(c);
  }

  // Where a kind may begin: with one of some characters, with the first letter or digit of a word, or with a byte of a picture.
  struct Kind {
    std::string_view first;
    size_t (Finder::*end)(size_t at);
  };
  static constexpr std::string_view kWord = "word", kPicture = "picture";

  // Returns the end of the longest placeholder that begins at `at`; `at` if there is none. docs/guides/documents.md has the same table,
  // with examples; tests/document/placeholders_test.cpp has a case of each.
  size_t end_at(size_t at) {
    static constexpr Kind kKinds[] = {
        {"{$#%", &Finder::braces},   {"$", &Finder::parentheses},      {"%", &Finder::capitals},
        {"%", &Finder::format},      {"%", &Finder::between_percents}, {"%<", &Finder::angles},
        {"[", &Finder::weblate},     {"_%#[", &Finder::doubled},       {"%", &Finder::numbered},
        {"`:", &Finder::code},       {":", &Finder::short_code},       {":", &Finder::colon_name},
        {"@", &Finder::mention},     {"@", &Finder::linked},           {"#", &Finder::tag},
        {"\\_", &Finder::escape},    {"/~.\\", &Finder::path},         {"#*0123456789", &Finder::keycap},
        {kWord, &Finder::path},      {kWord, &Finder::address},        {kWord, &Finder::mail},
        {kWord, &Finder::code_word}, {kPicture, &Finder::emoji},
    };
    static_assert(std::size(kKinds) <= 32);
    // For each byte a bit for each kind that may begin with it: most bytes begin none.
    static constexpr auto kByByte = [] {
      std::array<uint32_t, 256> kinds{};
      for (size_t k = 0; k < std::size(kKinds); ++k)
        for (size_t c = 0; c < kinds.size(); ++c) {
          const std::string_view first = kKinds[k].first;
          const bool begins = first == kWord      ? is_ascii_letter_or_digit(static_cast<char>(c))
                              : first == kPicture ? c >= 0xC2
                                                  : first.find(static_cast<char>(c)) != std::string_view::npos;
          if (begins) kinds[c] |= uint32_t{1} << k;
        }
      return kinds;
    }();
    const bool within_word = is_ascii_name(before(at));
    size_t end = at;
    for (uint32_t kinds = kByByte[byte(at)]; kinds != 0; kinds &= kinds - 1) {
      const Kind& kind = kKinds[std::countr_zero(kinds)];
      if (!within_word || kind.first != kWord) end = std::max(end, (this->*kind.end)(at));
    }
    return end;
  }
  // Returns the end of the matching braces, on one line; `at` if there are none.
  size_t braces(size_t at) {
    const size_t open = at + (byte(at) != '{');
    int depth = 0;
    for (size_t i = open; i < text_.size() && i - open <= kLongestVariable && byte(i) != '\n'; ++i) {
      if (byte(i) == '{') ++depth;
      if (byte(i) == '}' && --depth == 0) return i + 1;
      if (depth == 0) return at;
    }
    return at;
  }

  // Returns the end of "$(ARG1)" in user interfaces, or of "$t(common.cats)" of i18next, which may have options.
  size_t parentheses(size_t at) {
    const bool text = byte(at + 1) == 't';
    size_t i = at + 1 + text;
    if (byte(i) != '(') return at;
    for (++i; i - at < kLongestVariable && (text ? byte(i) != ')' && byte(i) > '\n' : is_ascii_name(byte(i)));) ++i;
    return byte(i - 1) != '(' && byte(i) == ')' ? i + 1 : at;
  }

  // Returns the end of a name between marks, such as "%count%" of Symfony, "[X4X]" of Weblate, "__NAME__".
  size_t between_percents(size_t at) {
    if (is_ascii_digit(before(at)) || !is_ascii_letter(byte(at + 1))) return at;
    size_t i = at + 1;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || ((byte(i) == '.' || byte(i) == '-') && is_ascii_name(byte(i + 1))))) ++i;
    return i - at > 2 && byte(i) == '%' && !is_ascii_name(byte(i + 1)) ? i + 1 : at;
  }
  size_t weblate(size_t at) {
    size_t i = at + 2;
    if (byte(at + 1) != 'X') return at;
    while (i - at < 12 && is_ascii_digit(byte(i))) ++i;
    return i > at + 2 && byte(i) == 'X' && byte(i + 1) == ']' ? i + 2 : at;
  }
  // "__NAME__", "%%name%%", "##name##", "[[name]]".
  size_t doubled(size_t at) {
    const char mark = static_cast<char>(byte(at)), close = mark == '[' ? ']' : mark;
    if (letter_before(at) || byte(at + 1) != byte(at) || !is_ascii_letter(byte(at + 2))) return at;
    size_t i = at + 2;
    while (i - at < kLongestPart && (is_ascii_letter_or_digit(byte(i)) || byte(i) == '-' || byte(i) == '.' ||
                                     (byte(i) == '_' && (mark != '_' || byte(i + 1) != '_'))))
      ++i;
    const bool closed = byte(i) == static_cast<unsigned char>(close) && byte(i + 1) == static_cast<unsigned char>(close);
    return closed && !letter_at(i + 2) ? i + 2 : at;
  }

  // "%1" and "%L2" of Qt, "%n", "%[1]s" of Go, "%arg" of Xcode, and the sign itself, "%%".
  size_t numbered(size_t at) {
    size_t i = at + 1;
    if (text_.substr(i, 3) == "arg" && !letter_at(i + 3)) return i + 3;
    if (byte(i) == '%') return is_ascii_letter(byte(i + 1)) ? at : i + 1;
    if (is_ascii_digit(before(at))) return at;
    const bool bracket = byte(i) == '[';
    i += bracket || byte(i) == 'L';
    const size_t digits = i;
    while (i < digits + 2 && is_ascii_digit(byte(i))) ++i;
    if (bracket) return i > digits && byte(i) == ']' && is_ascii_letter(byte(i + 1)) && !letter_at(i + 2) ? i + 2 : at;
    if (i == at + 1 && byte(i) == 'n') ++i;
    return i > digits && !letter_at(i) ? i : at;
  }

  // Returns the end of code in backticks on one line, with the role in front of it, as in reStructuredText: ":ref:`label`".
  size_t code(size_t at) {
    size_t i = at;
    if (byte(at) == ':') {
      if (letter_before(at)) return at;
      for (++i; i - at < kLongestPart && (is_ascii_name(byte(i)) || byte(i) == '-' || byte(i) == '+' || (byte(i) == ':' && i > at + 1));)
        ++i;
      if (byte(i - 1) != ':' || i < at + 3) return at;
    }
    if (byte(at) == '`' && letter_before(at)) return at;
    size_t marks = 0;
    while (byte(i) == '`' && marks < 3) ++i, ++marks;
    if (marks == 0 || marks == 3 || byte(i) == ' ' || byte(i) == 0) return at;
    for (const size_t begin = i; i - begin < kLongestVariable && i < text_.size() && byte(i) != '\n'; ++i)
      if (text_.substr(i, marks) == std::string_view("``").substr(0, marks) && byte(i + marks) != '`')
        return letter_at(i + marks) ? at : i + marks;
    return at;
  }

  // Returns the end of ":name" of Laravel, which no letter precedes; emoticons such as ":D" count. Behind a word and a space only names
  // that programs have: people write ":voir" by mistake.
  size_t colon_name(size_t at) {
    if (letter_before(at) || before(at) == ':' || before(at) == ')' || !is_ascii_letter(byte(at + 1))) return at;
    size_t i = at + 1;
    while (i - at < kLongestPart && is_ascii_name(byte(i))) ++i;
    if (letter_at(i) || (byte(i) == ':' && letter_at(i + 1))) return at;
    const std::string_view name = text_.substr(at + 1, i - at - 1);
    const bool technical = name.size() < 2 || std::any_of(name.begin(), name.end(), [](char c) { return !is_ascii_letter(c) || c < 'a'; });
    const bool behind_word = at > 1 && before(at) == ' ' && letter_before(at - 1);
    return technical || !behind_word || is_variable_name(name) ? i : at;
  }

  // Returns the end of the link to another message, "@:common.cats", as in vue-i18n.
  size_t linked(size_t at) {
    if (byte(at + 1) != ':' || !is_ascii_letter(byte(at + 2))) return at;
    size_t i = at + 2;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || (byte(i) == '.' && is_ascii_name(byte(i + 1))))) ++i;
    return i;
  }

  // Returns the end of "<%= name %>" of ERB, or of "%<name>s" of Ruby.
  size_t angles(size_t at) {
    if (byte(at) == '<') {
      const size_t end = byte(at + 1) == '%' ? text_.substr(0, at + kLongestVariable).find("%>", at + 2) : std::string_view::npos;
      return end == std::string_view::npos ? at : end + 2;
    }
    size_t i = at + 2;
    if (byte(at + 1) != '<') return at;
    while (i - at < kLongestPart && is_ascii_name(byte(i))) ++i;
    if (i == at + 2 || byte(i) != '>') return at;
    for (++i; is_ascii_digit(byte(i)) || byte(i) == '.';) ++i;
    return is_ascii_letter(byte(i)) && !letter_at(i + 1) ? i + 1 : at;
  }

  // Returns the end of what programs write for a line break, a tab or a quote, and spreadsheets for what XML cannot have: "_x000D_".
  size_t escape(size_t at) {
    const unsigned char c = byte(at + 1);
    if (byte(at) == '_')
      return c == 'x' && byte(at + 6) == '_' && text_.substr(at + 2, 4).find_first_not_of("0123456789abcdefABCDEF") == text_.npos ? at + 7
                                                                                                                                  : at;
    if (c == 'u') {
      size_t i = at + 2;
      while (i < at + 6 && is_ascii_letter_or_digit(byte(i))) ++i;
      return i == at + 6 ? i : at;
    }
    return c == 'n' || c == 't' || c == 'r' || c == '"' ? at + 2 : at;
  }

  // Returns the bytes of a character that names of files have; 0 for others. Scripts that are written without spaces have none, since what
  // follows a path there may be text.
  size_t path_character(size_t at) const {
    const unsigned char c = byte(at);
    if (c == '.') return path_character(at + 1) > 0 && byte(at + 1) != '.';
    if (c < 0x80) return is_ascii_name(c) || c == '-' || c == '+' || c == '~' || c == '%';
    const auto [letter, length] = decode_utf8_at(text_.substr(at));
    const bool is_letter = letter < 0x0900 && character_class(letter) == CharacterClass::other && !is_unicode_space(letter);
    return length > 0 && is_letter ? static_cast<size_t>(length) : 0;
  }

  // Returns the end of a path: "/usr/bin", "~/notes.txt", "../a.txt", "C:\\Users". One name behind a slash is none.
  size_t path(size_t at) {
    const std::string_view rest = text_.substr(at, 3);
    const bool drive = is_ascii_letter(byte(at)) && rest.substr(1) == ":\\";
    const unsigned char mark = drive || byte(at) == '\\' ? '\\' : '/';
    size_t i = drive ? at + 2 : at;
    if (!drive) {
      const bool relative = rest.starts_with("./") || rest == "../" || rest.starts_with("~/");
      if (byte(at) == '\\' && byte(at + 1) != '\\') return at;
      if (byte(at) != '/' && byte(at) != '\\' && !relative) return at;
      if (letter_before(at) || before(at) == '.' || before(at) == '/' || before(at) == ':' || before(at) == '>' || before(at) == '<')
        return at;
      while (byte(i) == '.' || byte(i) == '~') ++i;
      if (byte(at) == '\\') ++i;
    }
    size_t names = 0, dots = 0, end = at;
    while (byte(i) == mark && i - at < kLongestVariable) {
      size_t name = i + 1;
      for (size_t length; name - at < kLongestVariable && (length = path_character(name)) > 0; name += length) dots += byte(name) == '.';
      if (name == i + 1) break;
      ++names;
      end = i = name;
    }
    const bool enough = drive || byte(at) != '/' ? names > 0 : names > 1 || dots > 0;
    if (enough && byte(i) == mark && mark == '/') ++end;  // a directory
    return enough ? end : at;
  }

  // Returns the end of what only machines write: versions (v1.2, 1.2.3-rc1, 192.168.0.1), times of ISO 8601 (2026-11-28T18:59Z), UUIDs and
  // hashes. Ordinary numbers and dates are the model's.
  size_t code_word(size_t at) {
    size_t i = at, dots = 0, dashes = 0, colons = 0, digits = 0, letters = 0, others = 0;  // others: letters that are not hexadecimal
    for (; i - at < kLongestPart; ++i) {
      const unsigned char c = byte(i);
      const bool within = is_ascii_letter_or_digit(byte(i + 1)) && i > at;
      if (is_ascii_digit(c))
        ++digits;
      else if (is_ascii_letter(c))
        ++letters, others += (c | 0x20) > 'f';
      else if (c == '.' && within)
        ++dots;
      else if (c == '-' && within)
        ++dashes;
      else if ((c == ':' || c == '+') && within && dashes >= 2)
        ++colons;
      else
        break;
    }
    if (i == at || digits == 0 || letter_before(at) || before(at) == '.' || letter_at(i) || byte(i) == '@') return at;
    const std::string_view word = text_.substr(at, i - at);
    const bool prefixed = (word[0] | 0x20) == 'v' && word.size() > 1 && is_ascii_digit(static_cast<unsigned char>(word[1]));
    if (prefixed && (dots > 0 || letters == 1)) return i;
    const bool by_digit = is_ascii_digit(static_cast<unsigned char>(word[0]));
    if (letters == 0 && dashes == 0 && is_ip_address(word)) return i;
    if (by_digit && dots == 2 && dashes == 1 && letters > 0) return i;
    if (is_iso_time(word)) return i;
    if (others > 0 || dots > 0 || colons > 0) return at;
    if (dashes == 4 && word.size() == 36 && word.find('-') == 8) return i;
    return dashes == 0 && word.size() >= 7 && digits >= 2 && letters >= 1 && digits + letters == word.size() && word.size() <= 64 &&
                   std::none_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'F'; })
               ? i
               : at;
  }
  // Returns the end of a name of at least four capitals, such as "%PRODUCTNAME" or "%PATH%", that does not follow a digit; `at` if there is
  // none.
  size_t capitals(size_t at) {
    constexpr size_t kFewest = 4;
    if (is_ascii_digit(before(at))) return at;
    size_t i = at + 1;
    while (i - at < kLongestVariable && ((byte(i) >= 'A' && byte(i) <= 'Z') || byte(i) == '_' || (i > at + 1 && is_ascii_digit(byte(i)))))
      ++i;
    if (i < at + 1 + kFewest) return at;
    if (byte(i) == '%') return i + 1;
    return letter_at(i) ? at : i;
  }

  // Conversions of printf, Python and Cocoa; a percent sign after a number is just a percent sign.
  size_t format(size_t at) {
    size_t i = at + 1;
    if (byte(i) == '(') {
      while (++i < text_.size() && i - at <= kLongestVariable && is_ascii_name(byte(i))) {
      }
      if (byte(i) != ')') return at;
      ++i;
    } else if (is_ascii_digit(before(at))) {
      return at;
    }
    const size_t most = i + 12;
    while (i < most && (is_ascii_digit(byte(i)) || byte(i) == '$' || byte(i) == '.' || byte(i) == '-' || byte(i) == '+' || byte(i) == '#'))
      ++i;
    while (i < most && (byte(i) == 'l' || byte(i) == 'h' || byte(i) == 'z' || byte(i) == 'j')) ++i;
    if (byte(i) == 0 || std::string_view("diouxXeEfFgGcsp@").find(static_cast<char>(byte(i))) == std::string_view::npos) return at;
    if (byte(i) == '@' && byte(i - 1) == '#') {  // "%#@name@", "%1$#@name@": a text of its own, which depends on a number
      size_t end = i + 1;
      while (end - at < kLongestPart && is_ascii_name(byte(end))) ++end;
      if (end > i + 1 && byte(end) == '@') return end + 1;
    }
    return letter_at(i + 1) ? at : i + 1;
  }

  size_t mention(size_t at) {
    if (letter_before(at) || before(at) == '.') return at;
    size_t i = at + 1;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || ((byte(i) == '.' || byte(i) == '-') && is_ascii_name(byte(i + 1))))) ++i;
    if (i == at + 1 || text_.substr(i, 3) == "://") return at;
    return byte(i) == '@' ? std::max(i, host(i + 1)) : i;
  }

  size_t tag(size_t at) {
    if (letter_before(at) || before(at) == '&') return at;
    size_t i = at + 1;
    bool letter = false;
    while (i < text_.size() && i - at < kLongestPart) {
      const auto [c, length] = decode_utf8_at(text_.substr(i));
      const bool word =
          length == 1 ? is_ascii_name(byte(i)) : length > 1 && character_class(c) == CharacterClass::other && !is_unicode_space(c);
      if (!word) break;
      letter |= !is_ascii_digit(byte(i));
      i += static_cast<size_t>(length);
    }
    return letter ? i : at;
  }

  size_t short_code(size_t at) {
    if (letter_before(at) || !is_ascii_letter(byte(at + 1))) return at;
    size_t i = at + 1;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || byte(i) == '-' || byte(i) == '+')) ++i;
    return i - at > 2 && byte(i) == ':' && !is_ascii_name(byte(i + 1)) && byte(i + 1) != '/' ? i + 1 : at;
  }

  // A digit, # or * followed by an optional variation selector and a combining keycap.
  size_t keycap(size_t at) {
    if (!is_ascii_digit(byte(at)) && byte(at) != '#' && byte(at) != '*') return at;
    const size_t cap = at + (text_.substr(at + 1, 3) == "\uFE0F" ? 4 : 1);
    return cap < text_.size() && text_.substr(cap, 3) == "\u20E3" ? cap + 3 : at;
  }

  size_t emoji(size_t at) {
    size_t end = at;
    while (end < text_.size()) {
      const auto [c, length] = decode_utf8_at(text_.substr(end));
      if (length == 0 || !(is_picture(c) || (end > at && joins_emoji(c)))) break;
      end += static_cast<size_t>(length);
    }
    return end;
  }

  size_t address(size_t at) {
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with("www.") && letter_at(at + 4)) return up_to_space(at + 4);
    if (rest.starts_with("mailto:") && letter_at(at + 7)) return up_to_space(at + 7);
    size_t i = at;
    while (i - at < 20 && (is_ascii_letter_or_digit(byte(i)) || byte(i) == '+' || byte(i) == '-' || byte(i) == '.')) ++i;
    if (text_.substr(i, 3) != "://" || !(letter_at(i + 3) || byte(i + 3) == '/' || byte(i + 3) == '[')) return at;
    return up_to_space(i + 3);
  }
  // Excludes punctuation at the end, which belongs to the sentence.
  size_t up_to_space(size_t at) const {
    size_t end = at, opened = 0;
    while (end < text_.size()) {
      const unsigned char c = byte(end);
      if (c <= ' ' || c == '<' || c == '>' || c == '"' || c == '`' || c == '{' || c == '}' || c == '|' || c == '\\') break;
      if (c == '(') ++opened;
      if (c == ')' && opened-- == 0) break;
      if (c >= 0x80) {  // letters of other scripts; not their spaces, quotes and full stops
        const auto [value, length] = decode_utf8_at(text_.substr(end));
        if (length == 0 || is_unicode_space(value) || character_class(value) != CharacterClass::other) break;
        end += static_cast<size_t>(length);
      } else {
        ++end;
      }
    }
    while (end > at && std::string_view(".,;:!?'*").find(static_cast<char>(byte(end - 1))) != std::string_view::npos) --end;
    return end;
  }

  // name@host.domain; every start within the name finds the same @, so a name is looked at once.
  size_t mail(size_t at) {
    if (at < no_mail_before_) return at;
    size_t i = at;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || byte(i) == '.' || byte(i) == '-' || byte(i) == '+')) ++i;
    if (byte(i) == '@') {
      const size_t end = host(i + 1);
      if (end > i + 1) return end;
    }
    no_mail_before_ = i;
    return at;
  }
  // Returns the end of a name with a dot in it; `at` if there is none.
  size_t host(size_t at) const {
    size_t i = at;
    bool dot = false;
    while (i - at < 255 && (is_ascii_letter_or_digit(byte(i)) || byte(i) == '-' || (byte(i) == '.' && is_ascii_name(byte(i + 1)))))
      dot |= byte(i) == '.', ++i;
    return dot && i > at ? i : at;
  }

  std::string_view text_;
  size_t no_mail_before_ = 0;
};

}  // namespace

std::vector<Range> find_placeholders(std::string_view text) { return Finder(text).find(); }

}  // namespace starling
