// How text is written in Markdown, so that no character of it gets a meaning.
#pragma once

#include <string>
#include <string_view>

#include "units/markdown_scan.h"
#include "units/unit_text.h"

namespace starling {

struct MarkdownStyle {
  MarkdownLeaf::Kind kind = MarkdownLeaf::paragraph;
  bool at_line = true;      // the unit begins where a block could begin
  bool brackets = false;    // brackets that are text need no backslash
  bool dollars = false;     // the source has dollar signs behind a backslash
  bool links = false;       // "!" may come before a link
  std::string line_prefix;  // of the lines after the first
};

/// Appends text at a place of its unit.
void append_markdown(std::string& out, UnitText::Place place, std::string_view text, const MarkdownStyle& style);

}  // namespace starling
