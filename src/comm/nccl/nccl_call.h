// Turns NCCL errors into exceptions. NCCL is included only under src/comm/nccl/.
#pragma once

#include <nccl.h>

#include "base/error.h"
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {

// Why NCCL cannot be used here; "" if it can.
std::string nccl_problem();

// An NCCL call that was refused or failed.
class NcclError : public PeerError {
  using PeerError::PeerError;
};

// A call on a non-blocking communicator may still be in progress; the caller has to check for that.
inline void nccl_check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw NcclError(fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(nullptr)));
}

}  // namespace starling::STARLING_CUDA

// NCCL_CALL(Send, buffer, ...): ncclSend(buffer, ...), NcclError if it fails.
#define NCCL_CALL(name, ...) nccl_check(nccl##name(__VA_ARGS__), "nccl" #name)
