// The texts of a Markdown file by md4c, with the bytes of each piece: md4c's callbacks get pointers into what it reads. What it does not
// know, such as front matter and short codes, is hidden from it behind letters.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"

namespace starling {

struct MarkdownEvent {
  enum Kind : uint8_t { enter, leave, text, entity, html, code, line_break };
  Kind kind = text;
  char span = 0;                     // of enter and leave: e(m), s(trong), a, i(mage), c(ode), d(elete), m(ath)
  size_t begin = SIZE_MAX, end = 0;  // bytes of the file; SIZE_MAX: unknown
};

// A paragraph, a heading, a cell of a table, a block of HTML, or what an item of a tight list has.
struct MarkdownLeaf {
  enum Kind : uint8_t { paragraph, heading, cell, html };
  Kind kind = paragraph;
  std::vector<MarkdownEvent> events;
};

/// Calls `see` with each leaf of a file in UTF-8 of less than 4 GiB, and with the bytes of the file that were hidden, in order.
using SeeMarkdown = std::function<void(const MarkdownLeaf& leaf, const std::vector<Range>& hidden)>;
void scan_markdown(std::string_view text, const SeeMarkdown& see);

}  // namespace starling
