#include "document/plain_tags.h"

#include <map>

#include "base/ascii.h"

namespace starling {
namespace {

constexpr std::string_view kPlainTags = " a b bdi bdo br del em font i ins mark q s small span strike strong sub sup u wbr ";
constexpr size_t kLongestName = 6, kLongestTag = 1000;  // bytes

// Reads a tag from its "<".
class TagReader {
 public:
  TagReader(std::string_view text, size_t at) : text_(text.substr(0, at + kLongestTag)), at_(at + 1) {}

  // Sets kind, name and end of a token; returns false if there is no tag.
  bool read(HtmlToken& token) {
    const bool closes = take('/');
    while (token.name.size() <= kLongestName && is_ascii_letter_or_digit(here())) token.name += ascii_lower(text_[at_++]);
    const bool number = !token.name.empty() && token.name.size() <= 3 && token.name.find_first_not_of("0123456789") == std::string::npos;
    if (token.name.empty() || (!number && kPlainTags.find(" " + token.name + " ") == std::string_view::npos)) return false;
    if (!number && !closes)  // classes, as WebVTT has them: <i.loud>
      while (take('.'))
        while (is_ascii_letter_or_digit(here()) || here() == '-' || here() == '_') ++at_;
    while (skip_spaces() && is_ascii_letter(here()))
      if (closes || !attribute()) return false;
    const bool empty = take('/');
    if (!take('>') || (closes && empty)) return false;
    token.end = at_;
    const bool single = empty || token.name == "br" || token.name == "wbr";
    token.kind = single ? HtmlToken::other : closes ? HtmlToken::close : HtmlToken::open;
    token.separates = token.name == "br";
    return true;
  }

 private:
  unsigned char here() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : 0; }
  bool take(char c) { return here() == static_cast<unsigned char>(c) && ++at_ > 0; }
  bool skip_spaces() {
    const size_t before = at_;
    while (here() == ' ') ++at_;
    return at_ > before;
  }
  // name="value", name='value' or name=value.
  bool attribute() {
    while (is_ascii_letter_or_digit(here()) || here() == '-' || here() == ':') ++at_;
    if (!take('=')) return false;
    const char quote = static_cast<char>(here());
    if (quote == '"' || quote == '\'') {
      const size_t end = text_.find(quote, at_ + 1);
      at_ = end + 1;
      return end != std::string_view::npos;
    }
    const size_t begin = at_;
    while (here() > ' ' && here() != '>' && here() != '<') ++at_;
    return at_ > begin;
  }

  std::string_view text_;
  size_t at_;
};

}  // namespace

std::vector<HtmlToken> scan_plain_tags(std::string_view text) {
  std::vector<HtmlToken> tokens;
  std::map<std::string, std::vector<size_t>> open;
  size_t done = 0;
  const auto add_text = [&](size_t end) {
    if (end > done) tokens.push_back({HtmlToken::text, done, end, "", false, false, SIZE_MAX});
  };
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    HtmlToken token{HtmlToken::other, at, at, "", false, false, SIZE_MAX};
    if (!TagReader(text, at).read(token)) {
      ++at;
      continue;
    }
    add_text(at);
    at = done = token.end;
    std::vector<size_t>& opened = open[token.name];
    if (token.kind == HtmlToken::open) opened.push_back(tokens.size());
    if (token.kind == HtmlToken::close && !opened.empty()) {
      token.partner = opened.back();
      tokens[opened.back()].partner = tokens.size();
      opened.pop_back();
    }
    tokens.push_back(std::move(token));
  }
  add_text(text.size());
  return tokens;
}

}  // namespace starling
