#include "formats/html_pieces.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/ascii.h"
#include "document/html.h"

namespace starling {
namespace {

// Returns where a comment ends, or an element whose spaces or characters have a meaning of their own, if one begins at `at`; else `at`.
size_t whole_end(std::string_view page, size_t at) {
  constexpr std::string_view kWhole[] = {"pre",  "script", "style", "textarea", "xmp", "iframe", "noembed", "noframes",
                                         "code", "kbd",    "samp",  "var",      "svg", "math",   "object"};
  if (page.substr(at).starts_with("<!--")) return std::min(page.find("-->", at + 4), page.size());
  const auto names = [&](size_t from, std::string_view name) {
    const std::string_view here = page.substr(std::min(from, page.size()), name.size() + 1);
    return here.size() > name.size() && !is_ascii_letter_or_digit(here.back()) &&
           std::ranges::equal(here.substr(0, name.size()), name, {}, ascii_lower);
  };
  for (const std::string_view name : kWhole) {
    if (!names(at + 1, name)) continue;
    const size_t tag = page.find('>', at);
    if (tag == std::string_view::npos) return page.size();
    if (page[tag - 1] == '/') return at;
    for (size_t end = page.find("</", tag); end != std::string_view::npos; end = page.find("</", end + 2))
      if (names(end + 2, name)) return end;
    return page.size();
  }
  return at;
}

// Returns where to divide a page: behind a paragraph or the like, from `kHtmlPiece` bytes on; its end if that is near.
size_t piece_end(std::string_view page, size_t begin) {
  constexpr std::string_view kEnds[] = {"</p>", "</div>", "</li>", "</td>", "</h1>", "</h2>", "</h3>", "</dd>", "<br/>", "<br />"};
  if (page.size() - begin <= 2 * kHtmlPiece) return page.size();
  for (size_t at = page.find('<', begin); at != std::string_view::npos; at = page.find('<', at + 1)) {
    if (at > begin && at - begin > kMostHtmlPiece) return at;  // in the middle of a paragraph
    for (const std::string_view mark : kEnds)
      if (at - begin >= kHtmlPiece && page.substr(at).starts_with(mark)) return at + mark.size();
    at = whole_end(page, at);
    if (at == page.size()) break;
  }
  return page.size();
}

// Finds where XML can be divided, in two passes.
class XmlWalk {
 public:
  explicit XmlWalk(std::string_view xml) : xml_(xml), tokens_(xml) {}

  // Finds which elements have texts; returns false for what cannot be divided.
  bool find_texts() {
    while (const std::optional<HtmlToken> token = tokens_.next()) {
      const std::string_view bytes = xml_.substr(token->begin, token->end - token->begin);
      const bool text = token->kind == HtmlToken::text ? !std::ranges::all_of(bytes, is_ascii_space) : bytes.starts_with("<![CDATA[");
      if (text && open_.empty()) return false;
      if (text) has_text_[open_.back().number] = true;
      if (token->kind == HtmlToken::open) {
        open_.push_back({has_text_.size(), token->name});
        has_text_.push_back(false);
      } else if (token->kind == HtmlToken::close) {
        if (open_.empty() || open_.back().name != token->name) return false;
        open_.pop_back();
      }
    }
    return open_.empty();
  }

  std::vector<std::string_view> pieces() {
    std::vector<std::string_view> all;
    tokens_ = XmlTokens(xml_);
    size_t begin = 0, number = 0, texts = 0;  // elements that are open and have one
    while (const std::optional<HtmlToken> token = tokens_.next()) {
      if (token->kind == HtmlToken::open) {
        texts += has_text_[number];
        open_.push_back({number++, ""});
      } else if (token->kind == HtmlToken::close) {
        texts -= has_text_[open_.back().number];
        open_.pop_back();
        if (texts > 0 || token->end - begin < kHtmlPiece) continue;
        all.push_back(xml_.substr(begin, token->end - begin));
        begin = token->end;
      }
    }
    if (begin < xml_.size()) all.push_back(xml_.substr(begin));
    return all;
  }

 private:
  struct Open {
    size_t number;
    std::string name;
  };
  std::string_view xml_;
  XmlTokens tokens_;
  std::vector<Open> open_;
  std::vector<bool> has_text_;  // by the order of the elements
};

}  // namespace

std::vector<std::string_view> xml_pieces(std::string_view xml) {
  if (xml.empty()) return {};
  XmlWalk walk(xml);
  if (xml.size() <= kHtmlPiece || !walk.find_texts()) return {xml};
  return walk.pieces();
}

std::vector<std::string_view> html_pieces(std::string_view page) {
  const bool whole = page.find("notranslate") != page.npos || page.find("translate=") != page.npos;
  std::vector<std::string_view> pieces;
  for (size_t begin = 0; begin < page.size();) {
    const size_t end = whole ? page.size() : piece_end(page, begin);
    pieces.push_back(page.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

}  // namespace starling
