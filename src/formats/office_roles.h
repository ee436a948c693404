// What elements of office documents are to a translation: WordprocessingML, DrawingML, SpreadsheetML and OpenDocument, by one table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/office_xml.h"

namespace starling {

enum class OfficeRole : uint8_t {
  other,        // stays in its place; paragraphs in it are translated
  paragraph,    // its text is in runs
  mixed,        // a paragraph whose text stands in it directly
  run,          // text with one format
  format,       // the properties of a run
  text,         // of a run
  container,    // within a paragraph: goes with its words
  inner,        // the content of a container that has properties too
  transparent,  // within a paragraph: as if it were not there
  breaks,       // ends a sentence: tabs and line breaks
  kept,         // a field: the model sees its text
  field_mark,   // begins, divides or ends a field that is made of runs
  hyphen,       // one at which no line breaks
  skipped,      // stays as it is with all that is in it
  dropped,      // says something about the words, which change
  cell,         // of a table of OpenDocument: translated if it holds text
};

// `in_paragraph`: the tag stands within a paragraph.
OfficeRole office_role(const OfficeTag& tag, bool in_paragraph);

// Whether the result of a field of Word is text that is translated, by its instruction (HYPERLINK "...").
bool is_translated_field(std::string_view instruction);

// Whether the cell whose tag was read last holds text, and no number, date or formula.
bool holds_text(const OfficeXml& xml);

}  // namespace starling
