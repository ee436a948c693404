// What the verbs share that translate a development text and write what they found into the model's directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/lock.h"

namespace starling {

struct DevelopmentText {
  std::vector<std::string> sources, references;
};
// Reads sentences and their references. Throws DataError, naming the file, if there are none or the sides are unequally long.
DevelopmentText read_development_text(const std::string& source, const std::string& target);

// Locks the run of a checkpoint, so that no training replaces it in the meantime; returns null for a directory outside a run. Throws
// ConfigError if the directory cannot be changed; `instead` is what to do where it has no manifest.
std::unique_ptr<FileLock> reserve_model(FileSystem& files, const std::string& directory, const std::string& instead);

}  // namespace starling
