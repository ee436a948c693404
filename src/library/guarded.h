// Turns the errors of the program into the one of the library.
#pragma once

#include <exception>

#include "base/error.h"
#include "starling/error.h"

namespace starling {

// Rethrows the exception that is being handled as v0::Error.
[[noreturn]] void rethrow_for_callers();

// Returns f().
template <class Function>
decltype(auto) guarded(Function f) {
  try {
    return f();
  } catch (...) {
    rethrow_for_callers();
  }
}

}  // namespace starling
