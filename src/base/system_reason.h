// Explains to the user why the operating system refused a file operation. The words are in one place, so that a read-only directory is
// never reported as full.
#pragma once

#include <string>

namespace starling {

// Returns the reason and, if there is one, the remedy: "No space left on device; ...". For a file that grew too large it states the limit.
std::string system_reason(int error);

}  // namespace starling
