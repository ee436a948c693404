// The functions of cuBLASLt that products.cpp calls; each one forwards to the library that is opened at run time.
#include <cublasLt.h>

#include "backend/cuda/libraries.h"
#include "base/error.h"

namespace {

const starling::SharedLibrary& cublaslt() {
  static const starling::SharedLibrary& library =
      starling::STARLING_CUDA::nvidia_library(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR));
  return library;
}

}  // namespace

#define FORWARD(...) STARLING_FORWARD(cublaslt(), __VA_ARGS__)

extern "C" {
FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t s), (s))
FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * h), (h))
FORWARD(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t h), (h))
FORWARD(cublasStatus_t, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t * d, cublasComputeType_t c, cudaDataType_t s), (d, c, s))
FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t d), (d))
FORWARD(cublasStatus_t, cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void* value, size_t bytes), (d, a, value, bytes))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutCreate,
        (cublasLtMatrixLayout_t * l, cudaDataType t, uint64_t rows, uint64_t columns, int64_t leading), (l, t, rows, columns, leading))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t l), (l))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * p), (p))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t p), (p))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a, const void* value, size_t bytes), (p, a, value, bytes))
FORWARD(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t h, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
         cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t results[], int* found),
        (h, product, a, b, c, d, preference, asked, results, found))
FORWARD(cublasStatus_t, cublasLtMatmul,
        (cublasLtHandle_t h, cublasLtMatmulDesc_t product, const void* alpha, const void* a, cublasLtMatrixLayout_t la, const void* b,
         cublasLtMatrixLayout_t lb, const void* beta, const void* c, cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
         const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes, cudaStream_t stream),
        (h, product, alpha, a, la, b, lb, beta, c, lc, d, ld, algorithm, workspace, bytes, stream))
}

namespace starling::STARLING_CUDA {

std::string cublaslt_problem() { return cublaslt().problem(); }

}  // namespace starling::STARLING_CUDA
