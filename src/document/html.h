// HTML and XML as a row of tags and text, each with its own bytes: a scanner that forgives everything, since what it cannot read it leaves
// as it is. A parser that builds a tree (libgumbo) would give other bytes back: it mends nesting, adds elements and writes attributes anew.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct HtmlToken {
  enum Kind { text, open, close, other };  // other: void elements, comments, and what is not looked into, such as scripts
  Kind kind = text;
  size_t begin = 0, end = 0;  // bytes
  std::string name;           // of an element, in lower case
  bool separates = false;     // sentences never go on over it
  bool untouched = false;     // an element whose content is not translated: code, translate="no", class="notranslate"
  size_t partner = SIZE_MAX;  // the token that opens or closes the same element
};

/// What elements are to sentences beyond what their names say; names of HTML in small letters.
struct TagRules {
  using Names = std::set<std::string, std::less<>>;
  Names ignored;        // their content is not translated
  Names separating;     // sentences never go on over them
  Names within;         // sentences always do
  bool outline = true;  // of XML: elements separate that stand where no text does, among others in an element or at the top
};

/// The tokens of a text, in order and together all of it. Takes time in proportion to the text.
std::vector<HtmlToken> scan_html(std::string_view text, const TagRules& rules = {});

/// The same of XML, where no name means anything: no element is empty, raw or left alone but for the rules. Sections of CDATA stay.
std::vector<HtmlToken> scan_xml(std::string_view text, const TagRules& rules = {});

struct HtmlEntity {
  std::string text;   // UTF-8; "" for a name that is unknown
  size_t length = 0;  // bytes that it takes; 0: no entity
};

/// The entity at the beginning of a text, which begins with "&".
HtmlEntity html_entity(std::string_view text);

/// Appends text with &, < and > as entities.
void append_escaped(std::string& out, std::string_view text);

}  // namespace starling
