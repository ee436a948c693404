#include "base/outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/error.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

// Of a regular file or a directory, links followed; nothing for all else.
std::optional<struct stat> identity(const std::string& path, int standard) {
  struct stat status;
  const int result = path == "-" ? ::fstat(standard, &status) : ::stat(path.c_str(), &status);
  if (result != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return std::nullopt;
  return status;
}

// Without links, as far as it exists; what is to be made below that keeps its name.
fs::path real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::path(path) : real;
}

bool lies_in(const fs::path& path, const fs::path& directory) {
  const fs::path relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != ".." && relative != ".";
}

std::string shown(const NamedPath& p) { return p.path == "-" ? p.name : p.name + " " + p.path; }

}  // namespace

void refuse_own_input(const NamedPath& output, const std::vector<NamedPath>& inputs) {
  const auto written = identity(output.path, STDOUT_FILENO);
  for (const NamedPath& input : inputs) {
    if (input.path.empty()) continue;
    const auto read = identity(input.path, STDIN_FILENO);
    if (!read) continue;
    if (written && written->st_dev == read->st_dev && written->st_ino == read->st_ino)
      throw ConfigError(fmt::format("{} is the same {} as {}, which would be overwritten; choose another output", shown(output),
                                    S_ISDIR(read->st_mode) ? "directory" : "file", shown(input)));
    if (S_ISDIR(read->st_mode) && output.path != "-" && lies_in(real_path(output.path), real_path(input.path)))
      throw ConfigError(fmt::format("{} lies in {}, which would be altered; choose an output elsewhere", shown(output), shown(input)));
  }
}

}  // namespace starling
