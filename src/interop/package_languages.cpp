#include "interop/package_languages.h"

#include "base/json.h"
#include "interop/foreign_files.h"

namespace starling {

Languages package_languages(const nlohmann::json& metadata) {
  Languages languages;
  for (const auto& [key, to] : {std::pair{"from_code", &languages.source}, {"to_code", &languages.target}})
    if (metadata.is_object() && metadata.contains(key) && metadata[key].is_string() && is_language_code(metadata[key].get<std::string>()))
      *to = metadata[key].get<std::string>();
  return languages;
}

Languages package_languages(FileSystem& files, const std::string& path) {
  if (files.info(path).kind == FileKind::missing) return {};
  const auto folder = open_foreign(files, path);
  if (!folder->has("metadata.json")) return {};
  return package_languages(parse_json_object(folder->read("metadata.json"), folder->where("metadata.json")));
}

}  // namespace starling
