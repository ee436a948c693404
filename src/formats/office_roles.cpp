#include "formats/office_roles.h"

#include <algorithm>

#include "base/ascii.h"

namespace starling {
namespace {

struct RoleEntry {
  std::string_view names;  // of elements, with a space around each
  OfficeRole role;
};

// WordprocessingML. Text that was deleted or moved away by a tracked change stays as it is.
constexpr RoleEntry kWord[] = {
    {" p ", OfficeRole::paragraph},
    {" r ", OfficeRole::run},
    {" rPr ", OfficeRole::format},
    {" t ", OfficeRole::text},
    {" hyperlink ins moveTo smartTag customXml sdt bdo dir ", OfficeRole::container},
    {" sdtContent ", OfficeRole::inner},
    {" ruby rubyBase ", OfficeRole::transparent},
    {" br cr tab ptab ", OfficeRole::breaks},
    {" fldSimple ", OfficeRole::kept},
    {" fldChar ", OfficeRole::field_mark},
    {" noBreakHyphen ", OfficeRole::hyphen},
    {" del moveFrom pPr instrText delText ", OfficeRole::skipped},
    {" proofErr lastRenderedPageBreak softHyphen rt rubyPr ", OfficeRole::dropped},
};
constexpr RoleEntry kDrawing[] = {
    {" p ", OfficeRole::paragraph}, {" r ", OfficeRole::run},     {" rPr ", OfficeRole::format},
    {" t ", OfficeRole::text},      {" br ", OfficeRole::breaks}, {" fld ", OfficeRole::kept},
};
constexpr RoleEntry kSheet[] = {
    {" si is text ", OfficeRole::paragraph},   {" r ", OfficeRole::run}, {" rPr ", OfficeRole::format}, {" t ", OfficeRole::text},
    {" rPh phoneticPr ", OfficeRole::dropped},
};
constexpr RoleEntry kOpenText[] = {
    {" p h ", OfficeRole::mixed},
    {" span a meta ", OfficeRole::container},
    {" ruby ruby-base ", OfficeRole::transparent},
    {" ruby-text soft-page-break ", OfficeRole::dropped},
    {" line-break tab ", OfficeRole::breaks},
    {" tracked-changes ", OfficeRole::skipped},
};

OfficeRole find_role(std::string_view local, const RoleEntry* begin, const RoleEntry* end) {
  for (; begin != end && !local.empty(); ++begin)
    for (size_t i = begin->names.find(local); i != std::string_view::npos; i = begin->names.find(local, i + 1))
      if (begin->names[i - 1] == ' ' && begin->names[i + local.size()] == ' ') return begin->role;
  return OfficeRole::other;
}

}  // namespace

OfficeRole office_role(const OfficeTag& tag, bool in_paragraph) {
  OfficeRole role = OfficeRole::other;
  switch (tag.space) {
    case OfficeSpace::word:
      role = find_role(tag.local, std::begin(kWord), std::end(kWord));
      break;
    case OfficeSpace::drawing:
      role = find_role(tag.local, std::begin(kDrawing), std::end(kDrawing));
      break;
    case OfficeSpace::sheet:
      role = find_role(tag.local, std::begin(kSheet), std::end(kSheet));
      break;
    case OfficeSpace::slides:
      role = tag.local == "text" ? OfficeRole::mixed : OfficeRole::other;
      break;
    case OfficeSpace::text:
      role = find_role(tag.local, std::begin(kOpenText), std::end(kOpenText));
      break;
    case OfficeSpace::table:
      role = tag.local == "table-cell" ? OfficeRole::cell : OfficeRole::other;
      break;
    case OfficeSpace::ncx:
      role = tag.local == "text" ? OfficeRole::mixed : OfficeRole::other;
      break;
    default:
      break;
  }
  const bool block = role == OfficeRole::paragraph || role == OfficeRole::mixed || role == OfficeRole::cell;
  const bool anywhere = block || role == OfficeRole::skipped;
  return in_paragraph || anywhere ? role : OfficeRole::other;
}

bool is_translated_field(std::string_view instruction) {
  constexpr std::string_view kTranslated = " hyperlink toc index formtext quote ";
  instruction.remove_prefix(std::min(instruction.find_first_not_of(" \t\r\n"), instruction.size()));
  std::string word(instruction.substr(0, instruction.find_first_of(" \t\r\n\\\"")));
  for (char& c : word) c = ascii_lower(c);
  return !word.empty() && kTranslated.find(" " + word + " ") != std::string_view::npos;
}

bool holds_text(const OfficeXml& xml) { return !xml.attribute("formula") && xml.attribute("value-type").value_or("string") == "string"; }

}  // namespace starling
