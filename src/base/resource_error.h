// The machine cannot provide the threads or memory that were requested. A ConfigError, since other settings need less; but the work done
// so far is sound, and the same settings may succeed when the machine has more to give.
#pragma once

#include "base/error.h"

namespace starling {

struct ResourceError : ConfigError {
  using ConfigError::ConfigError;
};

}  // namespace starling
