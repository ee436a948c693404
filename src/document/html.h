// Scans HTML and XML into a sequence of tags and text, each with its own bytes. The scanner accepts everything, since it leaves what it
// cannot read as it is. A parser that builds a tree (libgumbo) would not give the same bytes back: it repairs nesting, adds elements and
// rewrites attributes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct HtmlToken {
  enum Kind { text, open, close, other };  // other: void elements, comments, and opaque elements such as scripts
  Kind kind = text;
  size_t begin = 0, end = 0;  // bytes
  std::string name;           // of an element, in lower case
  bool separates = false;     // sentences never continue across it
  bool untouched = false;     // an element whose content is not translated: code, translate="no", class="notranslate"
  size_t partner = SIZE_MAX;  // the token that opens or closes the same element; SIZE_MAX: none
};

/// How elements affect sentences, in addition to what their names imply; names of HTML elements are in lower case.
struct TagRules {
  using Names = std::set<std::string, std::less<>>;
  Names ignored;        // their content is not translated
  Names separating;     // sentences never continue across them
  Names within;         // sentences always continue across them
  bool outline = true;  // for XML: elements separate sentences if their parent (or the top level) has no text of its own
  bool operator==(const TagRules&) const = default;
};

/// Returns the tokens of a text in order; together they cover all of it. Takes linear time.
std::vector<HtmlToken> scan_html(std::string_view text, const TagRules& rules = {});

/// The same for XML, where names have no predefined meaning: elements are void, raw or untranslated only by the rules. CDATA sections stay
/// as they are.
std::vector<HtmlToken> scan_xml(std::string_view text, const TagRules& rules = {});

/// Reads the tokens of XML one after the other, as scan_xml() does without rules and without partners. The text must outlive it.
class XmlTokens {
 public:
  explicit XmlTokens(std::string_view text);
  ~XmlTokens();
  XmlTokens(XmlTokens&&) noexcept;
  XmlTokens& operator=(XmlTokens&&) noexcept;
  /// Returns nothing at the end.
  std::optional<HtmlToken> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the value of an attribute of a tag, whose name is given in lower case, as it is written; "" if it has none.
std::string_view tag_attribute(std::string_view tag, std::string_view name);

struct HtmlEntity {
  std::string text;   // UTF-8; "" for a name that is unknown
  size_t length = 0;  // bytes that it takes; 0: not an entity
};

/// Parses the entity at the beginning of a text that begins with "&".
HtmlEntity html_entity(std::string_view text);

/// Appends text with &, < and > as entities.
void append_escaped(std::string& out, std::string_view text);

}  // namespace starling
