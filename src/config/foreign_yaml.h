// YAML that other programs, or strangers, have written: it is read within bounds, and without aliases, by which a short text can stand for
// a large one or for one without end.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

namespace starling {

// Reads the first document of a text. Throws DataError, beginning with `where` and the line, for text that is not YAML, for aliases, for
// more than a few levels, and for more bytes than `most_bytes`.
YAML::Node read_foreign_yaml(const std::string& text, const std::string& where, size_t most_bytes = 64 << 20);

}  // namespace starling
