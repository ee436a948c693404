#include "tests/emulated/include/cublasLt.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"
#include "tests/emulated/emulator.h"

namespace emulated_cuda {

struct ProductDescription {
  cublasOperation_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct MatrixLayout {
  cudaDataType_t type;
  int64_t rows, columns, leading;

  int64_t element() const { return type == CUDA_R_32F ? 4 : 2; }
  size_t bytes() const { return static_cast<size_t>(((columns - 1) * leading + rows) * element()); }
};
struct ProductPreference {
  uint64_t workspace = 0;
  uint32_t reduction = 0x7, align[4] = {256, 256, 256, 256};
};

namespace {

// What an algorithm that was chosen promises: m, n, k, alignments of a, b, c and d (in one number), and a mark.
constexpr uint64_t kMark = 0x51a211e6;
constexpr size_t kWorkspace = 4 << 10;  // asked for where it is allowed, and overwritten with what is no number

bool well_formed(const ProductDescription& p, const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& c, const MatrixLayout& d) {
  const int64_t m = p.ta == CUBLAS_OP_N ? a.rows : a.columns, k = p.ta == CUBLAS_OP_N ? a.columns : a.rows;
  const int64_t n = p.tb == CUBLAS_OP_N ? b.columns : b.rows, kb = p.tb == CUBLAS_OP_N ? b.rows : b.columns;
  const bool types = a.type == b.type && c.type == d.type && (a.type != CUDA_R_32F || d.type == CUDA_R_32F);
  return types && k == kb && d.rows == m && d.columns == n && c.rows == m && c.columns == n && m > 0 && n > 0 && k > 0;
}

float value(const MatrixLayout& layout, const void* at, int64_t i) {
  return layout.type == CUDA_R_32F ? static_cast<const float*>(at)[i] : starling::widen(static_cast<const starling::bf16*>(at)[i]);
}

std::vector<float> widened(const MatrixLayout& layout, const void* at, bool transposed) {
  const int64_t rows = transposed ? layout.columns : layout.rows, columns = transposed ? layout.rows : layout.columns;
  std::vector<float> v(static_cast<size_t>(rows * columns));  // row-major [rows, columns]
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      v[r * columns + c] = value(layout, at, transposed ? r * layout.leading + c : c * layout.leading + r);
  return v;
}

}  // namespace

const char* cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS ? "success" : s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "invalid value";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) { return *h = nullptr, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* p, cublasComputeType_t, cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return *p = new ProductDescription, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p) { return delete p, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  if (bytes != (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void*) : 4)) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      p->ta = *static_cast<const cublasOperation_t*>(value);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      p->tb = *static_cast<const cublasOperation_t*>(value);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      p->epilogue = *static_cast<const cublasLtEpilogue_t*>(value);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      p->bias = *static_cast<const void* const*>(value);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* m, cudaDataType_t type, uint64_t rows, uint64_t columns,
                                          int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *m = new MatrixLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t m) { return delete m, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) { return *p = new ProductPreference, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return delete p, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (bytes != (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4)) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    p->workspace = *static_cast<const uint64_t*>(value);
  else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    p->reduction = *static_cast<const uint32_t*>(value);
  else
    p->align[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = *static_cast<const uint32_t*>(value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t p, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                                              int asked, cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  // Sums in the output's type would differ from those that training relies on.
  CHECK((preference->reduction & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) == 0, "partial sums in the output's type are allowed");
  if (asked < 1 || !well_formed(*p, *a, *b, *c, *d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 1;
  uint64_t alignment = 0;
  for (int i = 0; i < 4; ++i) alignment |= uint64_t{preference->align[i]} << (16 * i);
  const size_t workspace = std::min<size_t>(kWorkspace, preference->workspace);
  *results = {{{kMark, static_cast<uint64_t>(d->rows), static_cast<uint64_t>(d->columns), alignment, static_cast<uint64_t>(p->epilogue),
                workspace}},
              workspace,
              CUBLAS_STATUS_SUCCESS};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, const void* alpha, const void* a, cublasLtMatrixLayout_t la,
                              const void* b, cublasLtMatrixLayout_t lb, const void* beta, const void* c, cublasLtMatrixLayout_t lc, void* d,
                              cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  if (!well_formed(*p, *la, *lb, *lc, *ld) || c != d) return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm->data[0] != kMark || algorithm->data[1] != static_cast<uint64_t>(ld->rows) ||
      algorithm->data[2] != static_cast<uint64_t>(ld->columns) || algorithm->data[4] != static_cast<uint64_t>(p->epilogue))
    return CUBLAS_STATUS_NOT_SUPPORTED;  // chosen for another product
  if (workspace_bytes < algorithm->data[5]) return CUBLAS_STATUS_INVALID_VALUE;
  const void* const addresses[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(addresses[i]) % (algorithm->data[3] >> (16 * i) & 0xffff) != 0) return CUBLAS_STATUS_INVALID_VALUE;
  const bool has_bias = (p->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  if (has_bias && (p->bias == nullptr || reinterpret_cast<uintptr_t>(p->bias) % static_cast<uintptr_t>(ld->element()) != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  const auto work = [product = *p, a, A = *la, b, B = *lb, d, D = *ld, scale, keep, has_bias, workspace, workspace_bytes] {
    CHECK(workspace_bytes == 0 || (on_device(workspace, workspace_bytes) && reinterpret_cast<uintptr_t>(workspace) % 16 == 0),
          "a workspace of {} bytes that is not aligned, or outside the card's memory", workspace_bytes);
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    CHECK(on_device(a, A.bytes()) && on_device(b, B.bytes()) && on_device(d, D.bytes()),
          "a product reads or writes outside the card's memory");
    CHECK(!has_bias || on_device(product.bias, static_cast<size_t>(D.rows * D.element())), "a bias outside the card's memory");
    const int64_t m = D.rows, n = D.columns, k = product.ta == CUBLAS_OP_N ? A.columns : A.rows;
    const std::vector<float> x = widened(A, a, product.ta == CUBLAS_OP_T), y = widened(B, b, product.tb == CUBLAS_OP_T);
    std::vector<float> sums(static_cast<size_t>(n));
    for (int64_t i = 0; i < m; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t l = 0; l < k; ++l) {
        const float f = x[i * k + l];
        const float* const row = y.data() + l * n;
        for (int64_t j = 0; j < n; ++j) sums[j] += f * row[j];
      }
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = j * D.leading + i;
        float sum = scale * sums[j];
        if (keep != 0) sum += keep * value(D, d, at);
        if (has_bias) sum += value(D, product.bias, i);
        if ((product.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && sum < 0) sum = 0;
        if (D.type == CUDA_R_32F)
          static_cast<float*>(d)[at] = sum;
        else
          static_cast<starling::bf16*>(d)[at] = starling::round_to_bf16(sum);
      }
    }
  };
  count_product(ld->columns);
  return enqueue_host_work(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

}  // namespace emulated_cuda

namespace starling::STARLING_CUDA {

std::string cublaslt_problem() { return ""; }

}  // namespace starling::STARLING_CUDA
