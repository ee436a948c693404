// The languages of a package without reading its model.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/files.h"
#include "text/languages.h"

namespace starling {

// Returns the languages that the content of a metadata.json names; "" for those that it does not.
Languages package_languages(const nlohmann::json& metadata);
// Returns the languages that the metadata of an Argos package name, an archive or a folder; "" for those that they do not, and for a path
// that is no package. Throws DataError for damaged archives and metadata.
Languages package_languages(FileSystem& files, const std::string& path);

}  // namespace starling
