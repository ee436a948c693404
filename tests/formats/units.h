// The texts of a file of units as lines, and its assembly from lines.
#pragma once

#include <string>
#include <vector>

#include "formats/unit_file.h"

namespace starling {

inline std::string texts_of(const UnitFile& file) {
  std::string all;
  for (const TextUnit& unit : file.units()) all += unit.text + "\n";
  return all;
}

/// `translations` has a line for each unit.
inline std::string assembled(const UnitFile& file, const std::string& translations) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < translations.size();) {
    const size_t end = translations.find('\n', at);
    lines.push_back(translations.substr(at, end - at));
    at = end + 1;
  }
  return file.assemble(lines);
}

}  // namespace starling
