// Rewrites one XML file of an office document: its paragraphs are translated, all else is copied.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "formats/office_paragraph.h"

namespace starling {

// Gets a paragraph that has words; returns the translation of paragraph.tagged(), or nothing if the paragraph is to stay as it is.
using TranslateParagraph = std::function<std::optional<std::string>(OfficeParagraph& paragraph)>;

// Calls `see` with each paragraph that has words, in the order of rewrite_office_part().
void read_office_part(std::string_view xml, const std::string& where, const std::function<void(OfficeParagraph&)>& see);

// Writes the file, in pieces. Paragraphs within paragraphs (footnotes, text boxes) come before those that they are in. `where` begins
// messages. Throws DataError for what is not well-formed.
void rewrite_office_part(std::string_view xml, const std::string& where, const TranslateParagraph& translate,
                         const std::function<void(std::string_view)>& write);

}  // namespace starling
