#include "base/json_lines.h"

#include <fstream>

namespace starling {

bool for_each_json_line(const std::string& path, const std::function<void(const nlohmann::json& object, int64_t line)>& take) {
  std::ifstream file(path);
  if (!file) return false;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    ++number;
    if (json.is_object()) take(json, number);
  }
  return true;
}

}  // namespace starling
