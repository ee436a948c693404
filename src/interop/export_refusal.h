// Why a model of ours cannot be written in another program's format.
#pragma once

#include <string>

#include "base/error.h"

namespace starling {

[[noreturn]] inline void refuse_export(const std::string& directory, const char* program, const char* key, const std::string& value,
                                       const char* instead) {
  throw ConfigError(fmt::format("{}: {}'s models cannot have model.{}: {}; train one with {}", directory, program, key, value, instead));
}

}  // namespace starling
