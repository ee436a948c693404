// Tables of fixtures: fields with tabs between them, lines that end with LF only.
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace starling {

inline std::vector<std::string> fields_of(const std::string& line, char separator = '\t') {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == separator)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

// The rows of tests/fixtures/NAME; the first may hold the names of the columns.
inline std::vector<std::vector<std::string>> table_rows(const std::string& name) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/fixtures/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(fields_of(line));
  return rows;
}

}  // namespace starling
