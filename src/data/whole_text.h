// A text file as a whole, line ends and all, for those who must give every byte back.
#pragma once

#include <string>

namespace starling {

/// The content of a plain, .gz or .zst file, or of standard input ("-"), without a byte order mark. IoError if it cannot be read or has
/// more than 1 GiB; DataError ("file:line: ...") where it is not valid UTF-8, or a damaged archive.
std::string read_whole_text(const std::string& path);

}  // namespace starling
