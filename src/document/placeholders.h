// What in a sentence must come out of a translation as it went in: addresses, names of users, variables of programs, emoji. A model that
// was not trained on them often breaks them, so they are found before and put back after it.
#pragma once

#include <string_view>
#include <vector>

#include "base/range.h"

namespace starling {

/// Bytes of the placeholders of a text in order, none overlapping: URLs and e-mail addresses, @mentions, #tags, :short_codes:, {variables},
/// {{variables}}, ${variables}, %s and %(name)d, emoji. Takes time in proportion to the text.
std::vector<Range> find_placeholders(std::string_view text);

}  // namespace starling
