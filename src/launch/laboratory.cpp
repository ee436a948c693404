#include "launch/laboratory.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "launch/command.h"

namespace starling {
namespace {

constexpr const char* kLaboratory = "starling-lab";

}  // namespace

std::string laboratory_program(const std::string& verb) {
  const std::string folder = parent_path(this_program());
  const std::string beside = join_path(folder, kLaboratory), installed = join_path(parent_path(folder), "libexec/starling/starling-lab");
  for (const std::string& file : {beside, installed})
    if (access(file.c_str(), X_OK) == 0) return file;
  throw IoError(
      fmt::format("'starling {}' needs the program {}, which is neither {} nor {}; install the whole package 'starling', or build it with "
                  "cmake --build DIRECTORY --target starling-lab",
                  verb, kLaboratory, beside, installed));
}

bool is_laboratory(const std::string& path) { return path.ends_with(fmt::format("/{}", kLaboratory)); }

}  // namespace starling
