// Reads the XML of office documents tag by tag: each tag keeps its place in the text, so that what is not translated can be copied byte for
// byte, which parsers that build a tree or report events do not allow. Takes no memory but for the elements that are open.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"

namespace starling {

// Which vocabulary of elements a namespace is.
enum class OfficeSpace : char {
  other = '?',
  word = 'w',
  drawing = 'a',
  sheet = 's',
  slides = 'p',
  text = 't',
  office = 'o',
  table = 'b',
  style = 'y',
  format = 'f',
  xhtml = 'h',
  ncx = 'n',
  package = 'k',
  core = 'c',
};

struct OfficeTag {
  enum Kind { open, close, single, text, data, other };  // data: a CDATA section; other: comments, instructions, the document type
  Kind kind = other;
  size_t begin = 0, end = 0;
  std::string_view name;                   // as it is written, of an element
  OfficeSpace space = OfficeSpace::other;  // of its name
  std::string_view local;                  // its name without the prefix
  bool is(OfficeSpace s, std::string_view l) const { return space == s && local == l; }
};

class OfficeXml {
 public:
  // The text must outlive it; `where` begins messages.
  OfficeXml(std::string_view text, std::string where);

  // Reads the next tag or text; false at the end. Throws DataError where elements are not nested, or nested too deeply.
  bool next();
  const OfficeTag& tag() const { return tag_; }
  // Elements that are open behind the tag: an opening tag counts, a closing one no longer.
  size_t depth() const { return open_.size(); }
  // Reads to the end of the element whose opening tag was the last; nothing if that has no content. Returns where the element ends.
  size_t skip_element();

  std::string_view text() const { return text_; }
  std::string_view bytes() const { return text_.substr(tag_.begin, tag_.end - tag_.begin); }
  // Returns the value of an attribute of the last tag, as it is written; nothing if there is none.
  std::optional<std::string_view> attribute(std::string_view name) const;
  [[noreturn]] void broken(const std::string& why) const;

 private:
  struct Binding {
    size_t depth;
    std::string_view prefix;
    OfficeSpace space;
  };
  void read_markup();
  void bind_prefixes();
  OfficeSpace space_of(std::string_view prefix) const;

  std::string_view text_;
  std::string where_;
  OfficeTag tag_;
  size_t at_ = 0;
  std::vector<std::string_view> open_;
  std::vector<Binding> bindings_;
};

// Calls `see` with the bytes of each attribute's name and value in a tag, in order; returns early if `see` returns false.
template <class See>
void each_attribute(std::string_view tag, const See& see) {
  constexpr std::string_view kSpace = " \t\r\n";
  size_t at = tag.find_first_of(kSpace);
  while (at < tag.size()) {
    const size_t name = tag.find_first_not_of(kSpace, at), equals = tag.find('=', at);
    if (name == std::string_view::npos || equals == std::string_view::npos || equals < name) return;
    const size_t quote = tag.find_first_not_of(kSpace, equals + 1);
    if (quote == std::string_view::npos || (tag[quote] != '"' && tag[quote] != '\'')) return;
    const size_t end = tag.find(tag[quote], quote + 1);
    if (end == std::string_view::npos) return;
    const size_t name_end = tag.find_last_not_of(kSpace, equals - 1) + 1;
    if (!see(tag.substr(name, name_end - name), Range{static_cast<int64_t>(quote) + 1, static_cast<int64_t>(end)})) return;
    at = end + 1;
  }
}

// Appends the characters of XML text: entities become what they stand for.
void append_xml_characters(std::string& out, std::string_view xml);

}  // namespace starling
