// The functions of NCCL that this folder calls; each one forwards to the library that is opened at run time.
#include <nccl.h>

#include "backend/cuda/libraries.h"
#include "base/error.h"
#include "comm/nccl/nccl_call.h"

namespace {

const starling::SharedLibrary& nccl() {
  static const starling::SharedLibrary& library = starling::STARLING_CUDA::nvidia_library(fmt::format("libnccl.so.{}", NCCL_MAJOR));
  return library;
}

}  // namespace

#define FORWARD(...) STARLING_FORWARD(nccl(), __VA_ARGS__)

extern "C" {
FORWARD(const char*, ncclGetErrorString, (ncclResult_t r), (r))
FORWARD(const char*, ncclGetLastError, (ncclComm_t c), (c))
FORWARD(ncclResult_t, ncclGetVersion, (int* version), (version))
FORWARD(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id), (id))
FORWARD(ncclResult_t, ncclCommInitRankConfig, (ncclComm_t * c, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config),
        (c, ranks, id, rank, config))
FORWARD(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t c, ncclResult_t* state), (c, state))
FORWARD(ncclResult_t, ncclCommFinalize, (ncclComm_t c), (c))
FORWARD(ncclResult_t, ncclCommDestroy, (ncclComm_t c), (c))
FORWARD(ncclResult_t, ncclCommAbort, (ncclComm_t c), (c))
FORWARD(ncclResult_t, ncclGroupStart, (), ())
FORWARD(ncclResult_t, ncclGroupEnd, (), ())
FORWARD(ncclResult_t, ncclSend, (const void* from, size_t n, ncclDataType_t type, int to, ncclComm_t c, cudaStream_t stream),
        (from, n, type, to, c, stream))
FORWARD(ncclResult_t, ncclRecv, (void* into, size_t n, ncclDataType_t type, int from, ncclComm_t c, cudaStream_t stream),
        (into, n, type, from, c, stream))
FORWARD(ncclResult_t, ncclAllReduce,
        (const void* from, void* into, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c, cudaStream_t stream),
        (from, into, n, type, op, c, stream))
FORWARD(ncclResult_t, ncclReduce,
        (const void* from, void* into, size_t n, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t stream),
        (from, into, n, type, op, root, c, stream))
FORWARD(ncclResult_t, ncclBroadcast,
        (const void* from, void* into, size_t n, ncclDataType_t type, int root, ncclComm_t c, cudaStream_t stream),
        (from, into, n, type, root, c, stream))
}

namespace starling::STARLING_CUDA {

std::string nccl_problem() { return nccl().problem(); }

}  // namespace starling::STARLING_CUDA
