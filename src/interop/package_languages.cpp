#include "interop/package_languages.h"

#include "base/json.h"
#include "interop/foreign_files.h"

namespace starling {

Languages package_languages(FileSystem& files, const std::string& path) {
  Languages languages;
  if (files.info(path).kind == FileKind::missing) return languages;
  const auto folder = open_foreign(files, path);
  if (!folder->has("metadata.json")) return languages;
  const nlohmann::json json = parse_json_object(folder->read("metadata.json"), folder->where("metadata.json"));
  for (const auto& [key, to] : {std::pair{"from_code", &languages.source}, {"to_code", &languages.target}})
    if (json.contains(key) && json[key].is_string() && is_language_code(json[key].get<std::string>())) *to = json[key].get<std::string>();
  return languages;
}

}  // namespace starling
