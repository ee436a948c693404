// Errors of NCCL as exceptions. NCCL is included only under src/comm/nccl/.
#pragma once

#include <nccl.h>

#include "base/error.h"
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

// Calls of a communicator that does not block may still be in progress; whoever makes them looks for that.
inline void nccl_check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw PeerError(fmt::format("{} failed: {} ({}); look at the other ranks' messages, or at NCCL's own with NCCL_DEBUG=WARN", call,
                              ncclGetErrorString(result), ncclGetLastError(nullptr)));
}

}  // namespace starling::STARLING_CUDA

// NCCL_CALL(Send, buffer, ...): ncclSend(buffer, ...), PeerError if it fails.
#define NCCL_CALL(name, ...) nccl_check(nccl##name(__VA_ARGS__), "nccl" #name)
