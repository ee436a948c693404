// The elements of an XML file with their bytes, for files of which most bytes stay as they are.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "document/html.h"
#include "units/messages.h"

namespace starling {

/// A file of XML, which is read tag by tag, with some elements as a whole. Names of elements are local ones, without their prefix.
class XmlFile : public MessageFile {
 protected:
  /// Throws DataError with the line for what is not UTF-8.
  XmlFile(std::string bytes, bool in_place, std::string_view target);

  /// Begins to read the file.
  void rewind();
  /// Reads the next tag or text, which becomes token 0 and the only one; returns false at the end. Throws DataError with the line for
  /// elements that are not closed or cross each other.
  bool next();
  /// Reads the element that token 0 opens, if it does, to its end: its tokens follow.
  void take_element() { read_element(true); }
  /// The same without its tokens.
  void skip_element() { read_element(false); }
  /// Elements that are open behind what was read last.
  size_t depth() const { return open_.size(); }

  std::string_view bytes_of(size_t token) const { return std::string_view(text_).substr(begin_of(token), end_of(token) - begin_of(token)); }
  size_t begin_of(size_t token) const { return tokens_[token].begin; }
  size_t end_of(size_t token) const { return tokens_[token].end; }
  std::string_view name(size_t token) const;
  bool opens(size_t token) const { return tokens_[token].kind == HtmlToken::open; }
  /// Whether a token begins an element, also an empty one such as <a/>.
  bool is_element(size_t token) const { return opens(token) || (tokens_[token].kind == HtmlToken::other && !tokens_[token].name.empty()); }
  /// Returns the last token of the element that a token begins.
  size_t last_of(size_t token) const { return opens(token) ? tokens_[token].partner : token; }
  /// Returns the elements directly within another one.
  std::vector<size_t> children(size_t element) const;
  /// Returns the first of them with a name.
  std::optional<size_t> child(size_t element, std::string_view name) const;
  /// Returns the place of an attribute's value in the file. The name may have a prefix.
  std::optional<Range> attribute_place(size_t element, std::string_view name) const;
  std::string attribute(size_t element, std::string_view name) const;
  /// Sets attributes of an element, in place where they exist, else at the end of its tag.
  void set_attributes(size_t element, const std::vector<std::pair<std::string, std::string>>& values);
  /// Replaces what is within an element, which may be empty (<a/>). Nothing changes without fragments.
  void set_content(size_t element, Fragments fragments, WriteValue write);
  /// Refuses the file if an attribute names another language than `ours`, which `option` sets. "" is not known.
  void check_language(size_t element, const char* name, const std::string& ours, const char* option) const;
  /// Returns the text within an element, also of its sections of CDATA, without entities.
  std::string text_within(size_t element) const;
  /// Splits text of XML at the entities that the file declares itself, or whose names are unknown: every second piece is one.
  std::vector<std::string_view> split_at_own_entities(std::string_view xml) const;
  bool has_own_entity(size_t element) const;
  bool has_content(size_t element) const;  // other than white space and comments

  std::vector<HtmlToken> tokens_;

 private:
  std::optional<HtmlToken> read_token();
  void read_element(bool keep);
  std::string_view name_at(size_t tag) const;

  XmlTokens scanner_;
  std::vector<size_t> open_;        // bytes where the tags of open elements begin
  std::set<std::string> declared_;  // names of entities whose meaning is not that of HTML
};

inline constexpr std::string_view kCdata = "<![CDATA[";

/// Returns text of XML without entities.
std::string xml_text(std::string_view xml);
/// Writes characters that have a meaning in XML as entities.
void encode_xml(std::string& out, UnitText::Place place, std::string_view text);

}  // namespace starling
