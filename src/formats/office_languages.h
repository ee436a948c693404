// The language that office documents say their text has: for spelling, hyphenation, reading aloud.
#pragma once

#include <string>
#include <string_view>

#include "text/languages.h"

namespace starling {

// Returns an XML file of an office document in which whatever is said to be in the source language is said to be in the target language.
// Languages that are unknown change nothing.
std::string with_target_language(std::string xml, const Languages& languages, const std::string& where);

}  // namespace starling
