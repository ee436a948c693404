// Finds what a translation must leave unchanged: addresses, user names, variables of programs, emoji. A model that was not trained on them
// often breaks them, so they are found before translation and restored afterwards.
#pragma once

#include <string_view>
#include <vector>

#include "base/range.h"

namespace starling {

/// Returns the bytes of the placeholders of a text, in order and without overlaps: addresses, names of users, variables and formats of
/// many programs, code, paths, versions, hashes, emoji; docs/guides/documents.md has the table. Takes linear time.
std::vector<Range> find_placeholders(std::string_view text);

}  // namespace starling
