// A "<" that does not begin a tag is text. Quotes hide a ">" within attributes as long as they are closed; after an unclosed quote, quotes
// are ignored, so that a forgotten one does not turn the rest of a page into a single tag.
#include "document/html.h"

#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "text/unicode.h"

namespace starling {
namespace {

// Elements by their effect on sentences; each list has a space around every name.
constexpr std::string_view kSeparating =
    " address article aside blockquote body br caption center col colgroup dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link main menu meta nav noscript ol optgroup "
    "option p param pre section select summary table tbody td template textarea tfoot th thead title tr track ul video audio source ";
constexpr std::string_view kVoid = " area base br col embed frame hr img input link meta param source track wbr ";
constexpr std::string_view kRaw = " script style textarea xmp iframe noembed noframes ";  // up to their closing tag nothing is a tag
constexpr std::string_view kUntouched = " pre code kbd samp var svg math object ";

bool contains(std::string_view names, const std::string& name) { return names.find(" " + name + " ") != std::string_view::npos; }

bool equal_letters(std::string_view a, std::string_view small) {
  return a.size() == small.size() && std::equal(a.begin(), a.end(), small.begin(), [](char x, char y) { return ascii_lower(x) == y; });
}

bool keeps_its_text(std::string_view tag) {
  if (equal_letters(tag_attribute(tag, "translate"), "no")) return true;
  for (const std::string_view word : split_on_space(tag_attribute(tag, "class")))
    if (word == "notranslate") return true;
  return false;
}

class Scanner {
 public:
  Scanner(std::string_view text, bool xml, const TagRules& rules) : text_(text), xml_(xml), rules_(rules) {}

  std::vector<HtmlToken> scan() {
    while (step()) {
    }
    if (xml_ && rules_.outline) separate_by_outline();
    return std::move(tokens_);
  }

  // Returns the tokens up to the next tag, which have no partners; none at the end.
  std::vector<HtmlToken> some() {
    matches_ = false;
    tokens_.clear();
    step();
    return std::move(tokens_);
  }

 private:
  // Adds the next tag, and the text before it; returns false at the end.
  bool step() {
    while (at_ < text_.size()) {
      const size_t tag = text_.find('<', at_);
      if (tag == std::string_view::npos) break;
      const size_t end = markup_end(tag);
      at_ = tag + 1;
      if (end == 0) continue;
      add_text(tag);
      done_ = at_ = add_markup(tag, end);
      return true;
    }
    at_ = text_.size();
    add_text(at_);
    return false;
  }
  void add_text(size_t end) {
    if (end > done_) tokens_.push_back({HtmlToken::text, done_, end, "", false, false, SIZE_MAX});
    done_ = end;
  }

  // Returns the end of the tag or comment that begins at `at`; 0 if there is none.
  size_t markup_end(size_t at) {
    const std::string_view rest = text_.substr(at + 1);
    if (rest.empty()) return 0;
    if (rest.starts_with("!--")) return behind("-->", at + 2);
    if (rest.starts_with("![CDATA[")) return behind("]]>", at + 9);
    const bool closes = rest.front() == '/';
    if (xml_ && rest.front() == '?') return behind("?>", at + 2);
    if (xml_ && rest.starts_with("!DOCTYPE") && rest.substr(0, rest.find('>')).find('[') != std::string_view::npos)
      return behind_subset(at);
    if (rest.front() == '!' || rest.front() == '?')
      return rest.size() > 1 && (is_ascii_letter(rest[1]) || rest[1] == '[') ? behind(">", at + 2) : 0;
    if (rest.size() <= static_cast<size_t>(closes) || !begins_name(rest[closes])) return 0;
    return tag_end(at);
  }
  bool begins_name(char c) const { return is_ascii_letter(c) || (xml_ && (c == '_' || c == ':' || static_cast<unsigned char>(c) >= 0x80)); }
  // Returns the position after the next `mark`; without one, the rest of the text is hidden, as in browsers.
  size_t behind(std::string_view mark, size_t at) const {
    const size_t found = at <= text_.size() ? text_.find(mark, at) : std::string_view::npos;
    return found == std::string_view::npos ? text_.size() : found + mark.size();
  }
  // Returns the position after the "]>" of a document type with an internal subset; there may be spaces between the two characters.
  size_t behind_subset(size_t at) const {
    for (at = text_.find(']', at); at != std::string_view::npos; at = text_.find(']', at)) {
      for (++at; at < text_.size() && is_ascii_space(text_[at]);) ++at;
      if (at < text_.size() && text_[at] == '>') return at + 1;
    }
    return text_.size();
  }
  size_t tag_end(size_t at) {
    if (at >= no_end_from_) return 0;
    if (!quotes_broken_) {
      bool value = false;  // the last character was an equals sign
      for (size_t i = at + 1; i < text_.size(); ++i) {
        const char c = text_[i];
        if (c == '>') return i + 1;
        if (value && (c == '"' || c == '\'')) {
          i = text_.find(c, i + 1);
          if (i == std::string_view::npos) break;
          value = false;
        } else if (!is_ascii_space(c)) {
          value = c == '=';
        }
      }
      quotes_broken_ = true;
    }
    const size_t end = text_.find('>', at);
    if (end == std::string_view::npos) no_end_from_ = at;
    return end == std::string_view::npos ? 0 : end + 1;
  }

  // Adds the token of a tag and returns where it ends; for elements of raw text, that is after their closing tag.
  size_t add_markup(size_t begin, size_t end) {
    HtmlToken token{HtmlToken::other, begin, end, "", false, false, SIZE_MAX};
    const bool closes = text_[begin + 1] == '/';
    size_t name = begin + 1 + closes;
    if (begins_name(text_[name])) {
      for (; name < end && !is_ascii_space(text_[name]) && text_[name] != '>' && text_[name] != '/'; ++name)
        token.name += xml_ ? text_[name] : ascii_lower(text_[name]);
      const bool is_void = means(kVoid, token.name) || (!closes && text_[end - 2] == '/');
      token.separates = (means(kSeparating, token.name) || rules_.separating.contains(token.name)) && !rules_.within.contains(token.name);
      token.kind = is_void ? HtmlToken::other : closes ? HtmlToken::close : HtmlToken::open;
      if (token.kind == HtmlToken::open && means(kRaw, token.name)) {
        token.kind = HtmlToken::other;
        token.end = raw_end(token.name, end);
      }
      if (token.kind == HtmlToken::open)
        token.untouched = means(kUntouched, token.name) || rules_.ignored.contains(token.name) ||
                          (!xml_ && keeps_its_text(text_.substr(begin, end - begin)));
    }
    if (matches_) match(token);
    tokens_.push_back(std::move(token));
    return tokens_.back().end;
  }
  bool means(std::string_view names, const std::string& name) const { return !xml_ && contains(names, name); }
  size_t raw_end(const std::string& name, size_t at) {
    for (size_t close = text_.find("</", at); close != std::string_view::npos; close = text_.find("</", close + 2)) {
      if (!equal_letters(text_.substr(close + 2, name.size()), name)) continue;
      const size_t end = text_.find('>', close);
      return end == std::string_view::npos ? text_.size() : end + 1;
    }
    return text_.size();
  }
  void match(HtmlToken& token) {
    if (token.kind == HtmlToken::open) open_[token.name].push_back(tokens_.size());
    if (token.kind != HtmlToken::close) return;
    std::vector<size_t>& opened = open_[token.name];
    if (opened.empty()) return;
    token.partner = opened.back();
    tokens_[opened.back()].partner = tokens_.size();
    opened.pop_back();
  }

  // Elements separate sentences if their parent has no text of its own: paragraphs in a chapter do, an emphasised word in a paragraph does
  // not.
  void separate_by_outline() {
    constexpr size_t kTop = SIZE_MAX;
    std::vector<size_t> parents(tokens_.size(), kTop), open;
    std::vector<char> has_text(tokens_.size(), 0), is_open(tokens_.size(), 0);
    char top_has_text = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const HtmlToken& t = tokens_[i];
      if (t.kind == HtmlToken::close && t.partner != SIZE_MAX)
        while (is_open[t.partner]) {  // and the elements that cross it
          is_open[open.back()] = 0;
          open.pop_back();
        }
      if (!open.empty()) parents[i] = open.back();
      const std::string_view bytes = text_.substr(t.begin, t.end - t.begin);
      if ((t.kind == HtmlToken::text && !std::all_of(bytes.begin(), bytes.end(), is_ascii_space)) || bytes.starts_with("<![CDATA["))
        (parents[i] == kTop ? top_has_text : has_text[parents[i]]) = 1;
      if (t.kind == HtmlToken::open && t.partner != SIZE_MAX) {
        open.push_back(i);
        is_open[i] = 1;
      }
    }
    for (size_t i = 0; i < tokens_.size(); ++i) {
      HtmlToken& t = tokens_[i];
      if (t.name.empty() || rules_.within.contains(t.name)) continue;
      const size_t parent = t.kind == HtmlToken::close && t.partner != SIZE_MAX ? parents[t.partner] : parents[i];
      t.separates = t.separates || !(parent == kTop ? top_has_text : has_text[parent]);
    }
  }

  std::string_view text_;
  bool xml_;
  const TagRules& rules_;
  bool matches_ = true;            // tokens get partners
  size_t at_ = 0;                  // where the next tag is looked for
  size_t done_ = 0;                // bytes covered by tokens
  size_t no_end_from_ = SIZE_MAX;  // from here on there is no ">"
  bool quotes_broken_ = false;
  std::vector<HtmlToken> tokens_;
  std::unordered_map<std::string, std::vector<size_t>> open_;  // by name, the elements that are not closed yet
};

}  // namespace

std::string_view tag_attribute(std::string_view tag, std::string_view name) {
  size_t at = 1;
  while (at < tag.size() && !is_ascii_space(tag[at])) ++at;
  while (at < tag.size()) {
    while (at < tag.size() && (is_ascii_space(tag[at]) || tag[at] == '/' || tag[at] == '>')) ++at;
    const size_t key = at;
    while (at < tag.size() && !is_ascii_space(tag[at]) && tag[at] != '=' && tag[at] != '>') ++at;
    const std::string_view found = tag.substr(key, at - key);
    while (at < tag.size() && is_ascii_space(tag[at])) ++at;
    if (at >= tag.size() || tag[at] != '=') continue;
    ++at;
    while (at < tag.size() && is_ascii_space(tag[at])) ++at;
    if (at >= tag.size()) break;
    size_t value = at, end;
    if (tag[at] == '"' || tag[at] == '\'') {
      ++value;
      end = std::min(tag.find(tag[at], value), tag.size());
      at = end + 1;
    } else {
      while (at < tag.size() && !is_ascii_space(tag[at]) && tag[at] != '>') ++at;
      end = at;
    }
    if (equal_letters(found, name)) return tag.substr(value, end - value);
  }
  return "";
}

std::vector<HtmlToken> scan_html(std::string_view text, const TagRules& rules) { return Scanner(text, false, rules).scan(); }

std::vector<HtmlToken> scan_xml(std::string_view text, const TagRules& rules) { return Scanner(text, true, rules).scan(); }

struct XmlTokens::State {
  explicit State(std::string_view text) : scanner(text, true, kNoRules) {}
  static inline const TagRules kNoRules{{}, {}, {}, false};
  Scanner scanner;
  std::vector<HtmlToken> tokens;
  size_t next = 0;
};

XmlTokens::XmlTokens(std::string_view text) : state_(std::make_unique<State>(text)) {}
XmlTokens::~XmlTokens() = default;
XmlTokens::XmlTokens(XmlTokens&&) noexcept = default;
XmlTokens& XmlTokens::operator=(XmlTokens&&) noexcept = default;

std::optional<HtmlToken> XmlTokens::next() {
  if (state_->next == state_->tokens.size()) state_->tokens = state_->scanner.some(), state_->next = 0;
  if (state_->tokens.empty()) return std::nullopt;
  return std::move(state_->tokens[state_->next++]);
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
}

}  // namespace starling
