// Turns MPI errors into exceptions. MPI is included only under src/comm/mpi/.
#pragma once

#include <mpi.h>

#include "base/error.h"

namespace starling {

inline void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw PeerError(fmt::format("{} failed: {}; look at the other ranks' messages and at the network", call, text));
}

}  // namespace starling

// MPI_CALL(Isend, buffer, ...): MPI_Isend(buffer, ...), PeerError if it fails.
#define MPI_CALL(name, ...) ::starling::mpi_check(MPI_##name(__VA_ARGS__), "MPI_" #name)
