// Tags in plain text: what clients send as text has line breaks, italics and links of HTML in it all the same.
#pragma once

#include <string_view>
#include <vector>

#include "document/html.h"

namespace starling {

/// Returns tags and text in order; together they cover the text, and entities and all other markup are text. Tags are those that are
/// written as HTML has them and are usual within sentences (i, b, a, span, br and the like), and those with numbers as react-i18next writes
/// them
/// (<0>...</0>). Takes linear time.
std::vector<HtmlToken> scan_plain_tags(std::string_view text);

}  // namespace starling
