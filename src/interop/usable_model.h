// Models of other programs where a verb expects a model directory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"

namespace starling {

// Returns the path itself, unless it is a model of another program: that is imported once into the user's cache, and again if a file that
// the import reads has changed, and the directory there is returned. `say` gets a line before that. What was imported of the path before is
// removed then. Throws as recognise() and import_model(), and ConfigError if there is no cache.
std::string usable_model(FileSystem& files, const std::string& path, const std::function<void(const std::string&)>& say);
// The same with another way to import a model, such as import_in_process().
using Importer = std::function<void(const std::string& from, const std::string& output)>;
std::string usable_model(FileSystem& files, const std::string& path, const std::function<void(const std::string&)>& say,
                         const Importer& importer);

// Whether usable_model() would return a directory at once, without an import. Throws as recognise().
bool is_ready(FileSystem& files, const std::string& path);

// The state of the files that an import of a path would read, to see when it changes; "" for a path of ours. Throws as recognise().
std::string foreign_state(FileSystem& files, const std::string& path);

// What may be the packages of a folder (LibreTranslate's packages): archives, and folders that such were unpacked to. Throws ConfigError if
// there are none.
std::vector<std::string> packages_in(FileSystem& files, const std::string& folder);

}  // namespace starling
