#include "formats/office_parts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/ascii.h"
#include "formats/office_xml.h"

namespace starling {
namespace {

struct PartUse {
  std::string_view type;  // the end of a content type
  OfficePartUse use;
};
constexpr PartUse kPartUses[] = {
    {"wordprocessingml.document.main+xml", OfficePartUse::paragraphs},
    {"wordprocessingml.template.main+xml", OfficePartUse::paragraphs},
    {"ms-word.document.macroEnabled.main+xml", OfficePartUse::paragraphs},
    {"ms-word.template.macroEnabledTemplate.main+xml", OfficePartUse::paragraphs},
    {"wordprocessingml.header+xml", OfficePartUse::paragraphs},
    {"wordprocessingml.footer+xml", OfficePartUse::paragraphs},
    {"wordprocessingml.footnotes+xml", OfficePartUse::paragraphs},
    {"wordprocessingml.endnotes+xml", OfficePartUse::paragraphs},
    {"ml.comments+xml", OfficePartUse::paragraphs},
    {"ms-powerpoint.comments+xml", OfficePartUse::paragraphs},
    {"presentationml.slide+xml", OfficePartUse::paragraphs},
    {"presentationml.notesSlide+xml", OfficePartUse::paragraphs},
    {"spreadsheetml.sharedStrings+xml", OfficePartUse::paragraphs},
    {"spreadsheetml.worksheet+xml", OfficePartUse::paragraphs},
    {"officedocument.drawing+xml", OfficePartUse::paragraphs},
    {"drawingml.chart+xml", OfficePartUse::paragraphs},
    {"drawingml.chartshapes+xml", OfficePartUse::paragraphs},
    {"drawingml.diagramData+xml", OfficePartUse::paragraphs},
    {"drawingml.diagramDrawing+xml", OfficePartUse::paragraphs},
    {"wordprocessingml.styles+xml", OfficePartUse::languages},
    {"package.core-properties+xml", OfficePartUse::languages},
    {"presentation.main+xml", OfficePartUse::languages},
    {"spreadsheetml.table+xml", OfficePartUse::columns},
    {"spreadsheetml.pivotCacheDefinition+xml", OfficePartUse::columns},
};

std::string characters_of_xml(std::string_view xml) {
  std::string text;
  append_xml_characters(text, xml);
  return text;
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = ascii_lower(c);
  return text;
}

// A name as addresses write it, "my%20page.xhtml#top", as it is in the archive.
std::string file_name(std::string_view address) {
  address = address.substr(0, address.find('#'));
  std::string name;
  for (size_t i = 0; i < address.size(); ++i) {
    unsigned byte = 0;
    const char* digits = address.data() + i + 1;
    if (address[i] == '%' && i + 2 < address.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      name += static_cast<char>(byte);
      i += 2;
    } else {
      name += address[i];
    }
  }
  return name;
}

// The path of a file that one in `folder` ("OEBPS/" or "") refers to.
std::string resolved(std::string folder, std::string_view address) {
  std::string name = file_name(address);
  if (name.starts_with('/')) return name.substr(1);
  while (name.starts_with("../")) {
    name.erase(0, 3);
    if (!folder.empty()) folder.pop_back();
    folder.resize(folder.rfind('/') + 1);
  }
  if (name.starts_with("./")) name.erase(0, 2);
  return folder + name;
}

std::string without_escapes(std::string name) {  // a line break is _x000a_ in names, but itself in cells
  constexpr std::string_view kBreak = "_x000a_";
  for (size_t at = 0; (at = name.find("_x000", at)) != std::string::npos; ++at)
    if (const std::string_view e = std::string_view(name).substr(at, kBreak.size()); e == kBreak || e == "_x000A_")
      name.replace(at, kBreak.size(), "\n");
  return name;
}

}  // namespace

std::vector<OfficePartName> office_part_names(std::string_view types, std::span<const ZipEntry> entries) {
  std::vector<OfficePartName> parts;
  if (types.empty()) {
    for (const ZipEntry& e : entries) {
      const std::string_view file = std::string_view(e.name).substr(e.name.rfind('/') + 1);
      if (file == "content.xml" || file == "styles.xml") parts.push_back({e.name, OfficePartUse::paragraphs});
      if (e.name == "meta.xml") parts.push_back({e.name, OfficePartUse::languages});
    }
    return parts;
  }
  std::map<std::string, std::string_view, std::less<>> defaults;  // content types by the ends of names, without the dot
  std::set<std::string, std::less<>> overridden;
  const auto add = [&](const std::string& name, std::string_view type) {
    const auto use = std::ranges::find_if(kPartUses, [&](const PartUse& u) { return type.ends_with(u.type); });
    if (use != std::end(kPartUses)) parts.push_back({name, use->use});
  };
  OfficeXml xml(types, "[Content_Types].xml");
  while (xml.next()) {
    const std::string_view type = xml.attribute("ContentType").value_or("");
    if (xml.tag().local == "Default") defaults.emplace(in_lower_case(characters_of_xml(xml.attribute("Extension").value_or(""))), type);
    if (xml.tag().local != "Override") continue;
    const std::string name = file_name(characters_of_xml(xml.attribute("PartName").value_or("")));
    if (!name.starts_with('/') || !overridden.insert(name.substr(1)).second) continue;
    add(name.substr(1), type);
  }
  for (const ZipEntry& e : entries) {
    const size_t dot = e.name.rfind('.');
    if (dot == std::string::npos || e.name == "[Content_Types].xml" || overridden.contains(e.name)) continue;
    const auto type = defaults.find(in_lower_case(e.name.substr(dot + 1)));
    if (type != defaults.end()) add(e.name, type->second);
  }
  return parts;
}

void append_column_names(std::vector<std::string>& names, std::string_view text, const std::string& where) {
  if (text.empty()) return;
  OfficeXml xml(text, where);
  while (xml.next())
    if (xml.tag().local == "tableColumn" || xml.tag().local == "cacheField")
      if (const auto name = xml.attribute("name")) names.push_back(without_escapes(characters_of_xml(*name)));
}

std::vector<std::string> book_packages(std::string_view container) {
  std::vector<std::string> names;
  OfficeXml xml(container, "META-INF/container.xml");
  while (xml.next())
    if (xml.tag().local == "rootfile")
      if (const auto path = xml.attribute("full-path")) names.push_back(file_name(characters_of_xml(*path)));
  if (names.empty()) xml.broken("it does not name the book's package file");
  return names;
}

std::vector<BookItem> book_items(std::string_view opf, const std::string& package) {
  std::vector<BookItem> items;
  const std::string folder = package.substr(0, package.rfind('/') + 1);
  OfficeXml xml(opf, package);
  while (xml.next()) {
    if (xml.tag().local != "item" || xml.tag().kind == OfficeTag::close) continue;
    const std::string_view type = xml.attribute("media-type").value_or("");
    const bool contents = type == "application/x-dtbncx+xml";
    if (!contents && type != "application/xhtml+xml" && type != "text/html") continue;
    items.push_back({resolved(folder, characters_of_xml(xml.attribute("href").value_or(""))), contents});
  }
  return items;
}

std::vector<std::string> encrypted_names(std::string_view text) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  OfficeXml xml(text, "META-INF/encryption.xml");
  while (xml.next())
    if (xml.tag().local == "CipherReference")
      if (const auto uri = xml.attribute("URI")) names.push_back(file_name(characters_of_xml(*uri)));
  return names;
}

}  // namespace starling
