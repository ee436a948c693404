#include "formats/office_languages.h"

#include "base/ascii.h"
#include "formats/office_xml.h"

namespace starling {
namespace {

// The region of a code in capitals: "BR" for "pt-BR", "" for "pt".
std::string region_of(std::string_view code) {
  for (size_t at = code.find('-'); at != std::string_view::npos; at = code.find('-', at + 1)) {
    const std::string_view part = code.substr(at + 1, code.find('-', at + 1) - at - 1);
    if (part.size() == 2) return std::string(part);
  }
  return "";
}

}  // namespace

std::string with_target_language(std::string xml, const Languages& languages, const std::string& where) {
  const std::string from = main_language(languages.source), to = main_language(languages.target), region = region_of(languages.target);
  if (from.empty() || to.empty() || xml.find("lang") == std::string::npos) return xml;
  std::string out;
  out.reserve(xml.size() + xml.size() / 4);  // addresses, not memory; growing would take twice as much
  size_t done = 0;
  const auto replace = [&](size_t begin, size_t end, const std::string& text) {
    out.append(xml, done, begin - done);
    out += text;
    done = end;
  };
  OfficeXml reader(xml, where);
  while (reader.next()) {
    const OfficeTag tag = reader.tag();
    const std::string_view bytes = reader.bytes();
    if ((tag.kind != OfficeTag::open && tag.kind != OfficeTag::single) || bytes.find("lang") == std::string_view::npos) continue;
    if (tag.is(OfficeSpace::core, "language")) {
      if (tag.kind == OfficeTag::open && reader.next() && main_language(trimmed(reader.bytes(), " \n")) == from)
        replace(reader.tag().begin, reader.tag().end, languages.target);
      continue;
    }
    const bool element = tag.is(OfficeSpace::word, "lang");
    const bool ours = reader.attribute("fo:language") == std::string_view(from);
    each_attribute(bytes, [&](std::string_view name, Range value) {
      const size_t begin = static_cast<size_t>(value.begin), end = static_cast<size_t>(value.end);
      const bool whole = element ? name.ends_with(":val") : name == "lang" || name == "xml:lang";
      if (whole && main_language(bytes.substr(begin, end - begin)) == from)
        replace(tag.begin + begin, tag.begin + end, languages.target);
      else if (ours && name == "fo:language")
        replace(tag.begin + begin, tag.begin + end, to);
      else if (ours && name == "fo:country")
        replace(tag.begin + begin, tag.begin + end, region.empty() ? "none" : region);
      return true;
    });
  }
  return out.append(xml, done);
}

}  // namespace starling
