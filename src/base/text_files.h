// Small files that are read whole. What has no end (a device) or waits for somebody (a named pipe) is refused before it is read.
#pragma once

#include <string>

namespace starling {

// The content of a regular file; IoError when it cannot be read, is something else or larger than 1 GiB.
std::string read_text_file(const std::string& path);

// The content of a configuration file, which may also come from a pipe of the shell or a terminal (-c <(...), /dev/stdin): at most 1 MiB.
// IoError when it cannot be read, ConfigError when it is larger or a named pipe.
std::string read_config_file(const std::string& path);

}  // namespace starling
