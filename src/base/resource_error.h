// The machine gives less than was asked for: threads, memory. A ConfigError, since other settings need less; but nothing was wrong with
// what they have made so far, and the same settings may do when the machine gives more.
#pragma once

#include "base/error.h"

namespace starling {

struct ResourceError : ConfigError {
  using ConfigError::ConfigError;
};

}  // namespace starling
