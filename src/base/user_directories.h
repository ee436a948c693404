// Where programs keep what belongs to a user and not to a run, by the XDG Base Directory
// Specification.
#pragma once

#include <string>

namespace starling {

/// Returns Starling's folder below the directory that an environment variable names, else below `otherwise` in the user's home; "" if there
/// is no home. It need not exist.
std::string user_directory(const char* variable, const std::string& otherwise);

}  // namespace starling
