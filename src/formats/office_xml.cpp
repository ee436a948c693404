#include "formats/office_xml.h"

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "document/html.h"

namespace starling {
namespace {

constexpr size_t kDeepestXml = 2000;  // elements within each other

struct NamedSpace {
  std::string_view uri;
  OfficeSpace space;
};
constexpr NamedSpace kSpaces[] = {
    {"http://schemas.openxmlformats.org/wordprocessingml/2006/main", OfficeSpace::word},
    {"http://purl.oclc.org/ooxml/wordprocessingml/main", OfficeSpace::word},
    {"http://schemas.openxmlformats.org/drawingml/2006/main", OfficeSpace::drawing},
    {"http://purl.oclc.org/ooxml/drawingml/main", OfficeSpace::drawing},
    {"http://schemas.openxmlformats.org/spreadsheetml/2006/main", OfficeSpace::sheet},
    {"http://purl.oclc.org/ooxml/spreadsheetml/main", OfficeSpace::sheet},
    {"http://schemas.openxmlformats.org/presentationml/2006/main", OfficeSpace::slides},
    {"http://purl.oclc.org/ooxml/presentationml/main", OfficeSpace::slides},
    {"urn:oasis:names:tc:opendocument:xmlns:text:1.0", OfficeSpace::text},
    {"http://openoffice.org/2000/text", OfficeSpace::text},
    {"urn:oasis:names:tc:opendocument:xmlns:office:1.0", OfficeSpace::office},
    {"urn:oasis:names:tc:opendocument:xmlns:table:1.0", OfficeSpace::table},
    {"urn:oasis:names:tc:opendocument:xmlns:style:1.0", OfficeSpace::style},
    {"urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0", OfficeSpace::format},
    {"http://www.w3.org/1999/xhtml", OfficeSpace::xhtml},
    {"http://www.daisy.org/z3986/2005/ncx/", OfficeSpace::ncx},
    {"http://www.idpf.org/2007/opf", OfficeSpace::package},
    {"http://purl.org/dc/elements/1.1/", OfficeSpace::core},
};

bool begins_xml_name(char c) { return is_ascii_letter(c) || c == '_' || c == ':' || static_cast<unsigned char>(c) >= 0x80; }

}  // namespace

OfficeXml::OfficeXml(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF")) broken("it is in UTF-16");
  if (const auto bad = invalid_utf8_offset(text_)) {
    at_ = *bad;
    broken("a byte does not belong to UTF-8");
  }
}

void OfficeXml::broken(const std::string& why) const {
  throw DataError(fmt::format("{}: {} (byte {}); open the document in its program and save it again", where_, why, at_));
}

bool OfficeXml::next() {
  if (at_ == text_.size()) {
    if (!open_.empty()) broken(fmt::format("{} is not closed", in_quotes(std::string(open_.back()))));
    return false;
  }
  tag_ = OfficeTag{.kind = OfficeTag::text, .begin = at_, .end = 0, .name = {}, .space = OfficeSpace::other, .local = {}};
  if (text_[at_] != '<') {
    at_ = tag_.end = std::min(text_.find('<', at_), text_.size());
    return true;
  }
  read_markup();
  return true;
}

void OfficeXml::read_markup() {
  const std::string_view rest = text_.substr(at_);
  const auto through = [&](std::string_view mark, size_t from) {
    const size_t end = rest.find(mark, from);
    if (end == std::string_view::npos) broken(fmt::format("{} is not closed", in_quotes(std::string(rest.substr(0, 9)))));
    at_ = tag_.end = tag_.begin + end + mark.size();
  };
  tag_.kind = OfficeTag::other;
  if (rest.starts_with("<!--")) return through("-->", 4);
  if (rest.starts_with("<![CDATA[")) {
    through("]]>", 9);
    tag_.kind = OfficeTag::data;
    return;
  }
  if (rest.starts_with("<?")) return through("?>", 2);
  if (rest.starts_with("<!")) {
    const size_t subset = rest.substr(0, rest.find('>')).find('[');
    return subset == std::string_view::npos ? through(">", 2) : through("]>", 2);
  }
  const bool closes = rest.size() > 1 && rest[1] == '/';
  size_t end = 1 + closes;
  if (end >= rest.size() || !begins_xml_name(rest[end])) broken("a < does not begin a tag");
  while (end < rest.size() && !is_ascii_space(rest[end]) && rest[end] != '>' && rest[end] != '/') ++end;
  tag_.name = rest.substr(1 + closes, end - 1 - closes);
  for (char quote = 0; end < rest.size() && (quote || rest[end] != '>'); ++end) {
    if (quote ? rest[end] == quote : rest[end] == '"' || rest[end] == '\'') quote = quote ? 0 : rest[end];
    if (!quote && rest[end] == '<') broken(fmt::format("the tag {} is not closed", in_quotes(std::string(tag_.name))));
  }
  if (end == rest.size()) broken(fmt::format("the tag {} is not closed", in_quotes(std::string(tag_.name))));
  const bool single = !closes && rest[end - 1] == '/';
  tag_.end = tag_.begin + end + 1;
  tag_.kind = closes ? OfficeTag::close : single ? OfficeTag::single : OfficeTag::open;
  if (closes && (open_.empty() || open_.back() != tag_.name))
    broken(fmt::format("</{}> has no opening tag", printable(std::string(tag_.name))));
  if (!closes) bind_prefixes();
  const size_t colon = tag_.name.find(':');
  tag_.local = colon == std::string_view::npos ? tag_.name : tag_.name.substr(colon + 1);
  tag_.space = space_of(colon == std::string_view::npos ? "" : tag_.name.substr(0, colon));
  if (tag_.kind == OfficeTag::open) open_.push_back(tag_.name);
  if (open_.size() > kDeepestXml) broken(fmt::format("elements are nested more than {} levels deep", kDeepestXml));
  if (closes) open_.pop_back();
  while (tag_.kind != OfficeTag::open && !bindings_.empty() && bindings_.back().depth > open_.size()) bindings_.pop_back();
  at_ = tag_.end;
}

void OfficeXml::bind_prefixes() {
  constexpr size_t kMostBindings = 200;
  if (bytes().find("xmlns") == std::string_view::npos) return;
  each_attribute(bytes(), [&](std::string_view name, Range value) {
    if (!name.starts_with("xmlns") || (name.size() > 5 && name[5] != ':')) return true;
    const std::string_view uri = bytes().substr(static_cast<size_t>(value.begin), static_cast<size_t>(value.count()));
    OfficeSpace space = OfficeSpace::other;
    for (const NamedSpace& k : kSpaces)
      if (k.uri == uri) space = k.space;
    const std::string_view prefix = name.size() > 5 ? name.substr(6) : "";
    if (space == space_of(prefix)) return true;
    bindings_.push_back({open_.size() + 1, prefix, space});
    if (bindings_.size() > kMostBindings) broken("there are too many namespaces");
    return true;
  });
}

OfficeSpace OfficeXml::space_of(std::string_view prefix) const {
  for (size_t i = bindings_.size(); i > 0; --i)
    if (bindings_[i - 1].prefix == prefix) return bindings_[i - 1].space;
  return OfficeSpace::other;
}

size_t OfficeXml::skip_element() {
  if (tag_.kind == OfficeTag::open)
    for (const size_t depth = open_.size(); open_.size() >= depth;) next();
  return tag_.end;
}

std::optional<std::string_view> OfficeXml::attribute(std::string_view name) const {
  std::optional<std::string_view> found;
  each_attribute(bytes(), [&](std::string_view n, Range value) {
    const size_t colon = n.find(':');
    if (n != name && (colon == std::string_view::npos || n.substr(colon + 1) != name)) return true;
    found = bytes().substr(static_cast<size_t>(value.begin), static_cast<size_t>(value.count()));
    return false;
  });
  return found;
}

void append_xml_characters(std::string& out, std::string_view xml) {
  for (size_t at = 0; at < xml.size();) {
    const size_t mark = std::min(xml.find('&', at), xml.size());
    out.append(xml, at, mark - at);
    at = mark;
    if (at == xml.size()) return;
    const HtmlEntity entity = html_entity(xml.substr(at));
    out += entity.length > 0 && !entity.text.empty() ? entity.text : "&";
    at += entity.length > 0 && !entity.text.empty() ? entity.length : 1;
  }
}

}  // namespace starling
