// Reads small files whole. A source without an end (a device), or that may wait for a writer (a named pipe), is refused before it is read.
#pragma once

#include <string>

namespace starling {

class FileSystem;

// Returns the content of a regular file; throws IoError if it cannot be read, is not a regular file or is larger than 1 GiB.
std::string read_text_file(const std::string& path);
std::string read_text_file(FileSystem& files, const std::string& path);

// Returns the content of a configuration file, at most 1 MiB, which may also come from a shell's pipe or a terminal (-c <(...),
// /dev/stdin). Throws IoError if it cannot be read, ConfigError if it is larger or a named pipe.
std::string read_config_file(const std::string& path);

}  // namespace starling
