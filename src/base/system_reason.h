// What the operating system's refusal of a file operation means for the user: one place for the words, so that a read-only directory is
// never called full.
#pragma once

#include <string>

namespace starling {

// The reason and, where there is one, the remedy: "No space left on device; ...". For a file that grew too large with the limit.
std::string system_reason(int error);

}  // namespace starling
