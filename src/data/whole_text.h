// Reads a whole text file, line ends included, for callers that must preserve every byte.
#pragma once

#include <string>

namespace starling {

/// Returns the content of a plain, .gz or .zst file, or of standard input ("-"). Throws IoError if it cannot be read or is larger than 1
/// GiB, DataError ("file:line: ...") if it is not valid UTF-8 or is a damaged archive.
std::string read_whole_text(const std::string& path);

}  // namespace starling
