// Imports in a process of their own, for servers: what a hostile model makes of the importer, its requests do not feel.
#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"

namespace starling {

struct ImportLimits {
  uint64_t memory;  // bytes of data that the process may have
  double seconds;
};
// The limits for a model whose files have so many bytes: far beyond what any import takes that goes well.
ImportLimits import_limits(uint64_t bytes);

// Returns the bytes of a file, or of the files in a folder and its folders.
uint64_t bytes_of_files(FileSystem& files, const std::string& path);

// Runs `program import -o OUTPUT -- FROM` and waits for it. Throws ConfigError (exit status 2) or else DataError with its message, or with
// the limit that ended it. The process ends with the calling thread.
void import_in_process(const std::string& program, const std::string& from, const std::string& output, const ImportLimits& limits);

}  // namespace starling
