// Errors of NCCL as exceptions. NCCL is included only under src/comm/nccl/.
#pragma once

#include <nccl.h>

#include "base/error.h"
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

// Why NCCL cannot be used here; "" where it can.
std::string nccl_problem();

// A call that NCCL has refused, or that has failed.
class NcclError : public PeerError {
  using PeerError::PeerError;
};

// Calls of a communicator that does not block may still be in progress; whoever makes them looks for that.
inline void nccl_check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw NcclError(fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(nullptr)));
}

}  // namespace starling::STARLING_CUDA

// NCCL_CALL(Send, buffer, ...): ncclSend(buffer, ...), NcclError if it fails.
#define NCCL_CALL(name, ...) nccl_check(nccl##name(__VA_ARGS__), "nccl" #name)
