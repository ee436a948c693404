// YAML from other programs or untrusted sources: it is read within bounds, and without aliases, by which a short text can stand for
// a large one or for one without end.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <string>

namespace starling {

// Settings of Marian's and OpenNMT-py's have some 10 KB; a byte of YAML may take 250 while it is parsed.
constexpr size_t kMostForeignYaml = size_t{256} << 10;

// Reads the first document of a text. Throws DataError, beginning with `where` and the line, for text that is not YAML, for aliases, for
// more than a few levels, and for more than kMostForeignYaml bytes.
YAML::Node read_foreign_yaml(const std::string& text, const std::string& where);

// Reads a map of scalars of any length, which is never in memory as a whole, and passes on keys, values and lines, from 1. Throws DataError
// likewise, and for what is not such a map.
void for_each_in_map(const std::string& text, const std::string& where,
                     const std::function<void(const std::string& key, const std::string& value, int line)>& take);

}  // namespace starling
