// Scans the text once; at each position it tries every kind of placeholder, each with a bound on how far it looks.
#include "document/placeholders.h"

#include <algorithm>

#include "base/ascii.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kLongestVariable = 100;  // bytes
constexpr size_t kLongestPart = 100;      // bytes of a user name, a tag, or the part of an address before @

// Bytes of other scripts' letters count as letters; where it matters, their punctuation is excluded by hand.
bool is_ascii_name(unsigned char c) { return is_ascii_letter_or_digit(c) || c == '_'; }
bool is_name(unsigned char c) { return is_ascii_name(c) || c >= 0x80; }

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
      const size_t end = end_at(at);
      if (end > at) found.push_back({static_cast<int64_t>(at), static_cast<int64_t>(end)});
      at = std::max(end, at + 1);
    }
    return found;
  }

 private:
  unsigned char byte(size_t at) const { return at < text_.size() ? static_cast<unsigned char>(text_[at]) : 0; }
  unsigned char before(size_t at) const { return at > 0 ? byte(at - 1) : 0; }

  // Returns the end of the placeholder that begins at `at`; `at` if there is none.
  size_t end_at(size_t at) {
    const unsigned char c = byte(at);
    if (const size_t end = keycap(at); end > at) return end;
    if (c == '{') return braces(at);
    if ((c == '$' || c == '#' || c == '%') && byte(at + 1) == '{') return after(at, braces(at + 1), at + 1);
    if (c == '$' && byte(at + 1) == '(') return parentheses(at);
    if (c == '%') return std::max(capitals(at), format(at));
    if (c == '@') return mention(at);
    if (c == '#') return tag(at);
    if (c == ':') return short_code(at);
    if (c >= 0xC2) return emoji(at);
    if (is_ascii_letter(c) && !is_ascii_name(before(at))) {
      const size_t end = address(at);
      return end > at ? end : mail(at);
    }
    return is_ascii_digit(c) && !is_ascii_name(before(at)) ? mail(at) : at;
  }
  static size_t after(size_t at, size_t end, size_t inner) { return end > inner ? end : at; }

  // Returns the end of the matching braces, on one line; `at` if there are none.
  size_t braces(size_t at) const {
    int depth = 0;
    for (size_t i = at; i < text_.size() && i - at <= kLongestVariable && byte(i) != '\n'; ++i) {
      if (byte(i) == '{') ++depth;
      if (byte(i) == '}' && --depth == 0) return i + 1;
    }
    return at;
  }

  // Returns the end of a name in parentheses, such as "$(ARG1)" in user interfaces; `at` if there is none.
  size_t parentheses(size_t at) const {
    size_t i = at + 2;
    while (i - at < kLongestVariable && is_ascii_name(byte(i))) ++i;
    return i > at + 2 && byte(i) == ')' ? i + 1 : at;
  }

  // Returns the end of a name of at least four capitals, such as "%PRODUCTNAME" or "%PATH%", that does not follow a digit; `at` if there is
  // none.
  size_t capitals(size_t at) const {
    constexpr size_t kFewest = 4;
    if (is_ascii_digit(before(at))) return at;
    size_t i = at + 1;
    while (i - at < kLongestVariable && ((byte(i) >= 'A' && byte(i) <= 'Z') || byte(i) == '_' || (i > at + 1 && is_ascii_digit(byte(i)))))
      ++i;
    if (i < at + 1 + kFewest) return at;
    if (byte(i) == '%') return i + 1;
    return is_name(byte(i)) ? at : i;
  }

  // Conversions of printf, Python and Cocoa; a percent sign after a number is just a percent sign.
  size_t format(size_t at) const {
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
    return is_name(byte(i + 1)) ? at : i + 1;
  }

  size_t mention(size_t at) const {
    if (is_name(before(at)) || before(at) == '.') return at;
    size_t i = at + 1;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || ((byte(i) == '.' || byte(i) == '-') && is_ascii_name(byte(i + 1))))) ++i;
    if (i == at + 1 || text_.substr(i, 3) == "://") return at;
    return byte(i) == '@' ? std::max(i, host(i + 1)) : i;
  }

  size_t tag(size_t at) const {
    if (is_name(before(at)) || before(at) == '&') return at;
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

  size_t short_code(size_t at) const {
    if (is_name(before(at)) || !is_ascii_letter(byte(at + 1))) return at;
    size_t i = at + 1;
    while (i - at < kLongestPart && (is_ascii_name(byte(i)) || byte(i) == '-' || byte(i) == '+')) ++i;
    return i - at > 2 && byte(i) == ':' && !is_ascii_name(byte(i + 1)) && byte(i + 1) != '/' ? i + 1 : at;
  }

  // A digit, # or * followed by an optional variation selector and a combining keycap.
  size_t keycap(size_t at) const {
    if (!is_ascii_digit(byte(at)) && byte(at) != '#' && byte(at) != '*') return at;
    const size_t cap = at + (text_.substr(at + 1, 3) == "\uFE0F" ? 4 : 1);
    return cap < text_.size() && text_.substr(cap, 3) == "\u20E3" ? cap + 3 : at;
  }

  size_t emoji(size_t at) const {
    size_t end = at;
    while (end < text_.size()) {
      const auto [c, length] = decode_utf8_at(text_.substr(end));
      if (length == 0 || !(is_picture(c) || (end > at && joins_emoji(c)))) break;
      end += static_cast<size_t>(length);
    }
    return end;
  }

  size_t address(size_t at) const {
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with("www.") && is_name(byte(at + 4))) return up_to_space(at + 4);
    if (rest.starts_with("mailto:") && is_name(byte(at + 7))) return up_to_space(at + 7);
    size_t i = at;
    while (i - at < 20 && (is_ascii_letter_or_digit(byte(i)) || byte(i) == '+' || byte(i) == '-' || byte(i) == '.')) ++i;
    if (text_.substr(i, 3) != "://" || !(is_name(byte(i + 3)) || byte(i + 3) == '/' || byte(i + 3) == '[')) return at;
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
