#include "backend/cuda/products.h"

#include <algorithm>

namespace starling::STARLING_CUDA {
namespace {

constexpr int64_t kWorkspace = int64_t{32} << 20;
constexpr size_t kMostPlans = 4096;

void check(cublasStatus_t status, std::string_view what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(fmt::format("cuBLASLt, {}: {}", what, cublasLtGetStatusString(status)));
}

cudaDataType_t data_type(DType t) {
  CHECK(t == DType::f32 || t == DType::bf16, "products of {}", name_of(t));
  return t == DType::f32 ? CUDA_R_32F : CUDA_R_16BF;
}

// The library assumes that addresses are multiples of 256 bytes unless told otherwise. No kernel needs more than 16, and what an address
// has beyond that differs from run to run: a resumed run must be given the same algorithms.
uint32_t alignment_of(const void* p) {
  constexpr uintptr_t kMost = 16;
  const auto address = reinterpret_cast<uintptr_t>(p);
  return static_cast<uint32_t>(address == 0 ? kMost : std::min(address & (~address + 1), kMost));
}

}  // namespace

struct Products::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;

  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {a, b, d})
      if (layout) cublasLtMatrixLayoutDestroy(layout);
    if (product) cublasLtMatmulDescDestroy(product);
  }
};

Products::Products(CudaDevice& device) : device_(device) {
  device.stream();  // the card, for this thread
  check(cublasLtCreate(&handle_), "the library");
  workspace_ = std::make_unique<Storage>(kWorkspace, device.memory());
}

Products::~Products() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

Products::Plan& Products::plan_for(const Product& p) {
  const auto epilogue = p.bias   ? (p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                        : p.relu ? CUBLASLT_EPILOGUE_RELU
                                 : CUBLASLT_EPILOGUE_DEFAULT;
  const uint32_t align_a = alignment_of(p.a), align_b = alignment_of(p.b), align_d = alignment_of(p.d);
  const Key key{p.m,
                p.n,
                p.k,
                p.lda,
                p.ldb,
                p.ldd,
                (p.transpose_a ? 1 : 0) + (p.transpose_b ? 2 : 0) + (p.accumulate ? 4 : 0),
                static_cast<int>(p.in) * 16 + static_cast<int>(p.out),
                static_cast<int>(epilogue),
                static_cast<int>(align_a),
                static_cast<int>(align_b),
                static_cast<int>(align_d)};
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  if (plans_.size() >= kMostPlans) plans_.clear();

  auto plan = std::make_unique<Plan>();
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(plan->product, attribute, &value, sizeof value), "a product's attribute");
  };
  check(cublasLtMatmulDescCreate(&plan->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (p.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  const auto layout = [&](cublasLtMatrixLayout_t& to, DType type, int64_t rows, int64_t columns, int64_t leading) {
    check(cublasLtMatrixLayoutCreate(&to, data_type(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading),
          "a matrix");
  };
  layout(plan->a, p.in, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda);
  layout(plan->b, p.in, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb);
  layout(plan->d, p.out, p.m, p.n, p.ldd);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "a preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<size_t>(kWorkspace));
  // Partial sums are added in f32, never in the output's type.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, align_a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, align_b);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, align_d);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align_d);
  cublasLtMatmulHeuristicResult_t first{};
  int found = 0;
  // Always the first answer: timing candidates would flip near ties, and with them bits, between runs.
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, plan->product, plan->a, plan->b, plan->d, plan->d, preference, 1, &first, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check(status != CUBLAS_STATUS_SUCCESS || found > 0 ? status : CUBLAS_STATUS_NOT_SUPPORTED,
        fmt::format("an algorithm for a product of {} x {} x {} ({} to {}, leading dimensions {}, {}, {}, addresses aligned to {}, {}, {})",
                    p.m, p.n, p.k, name_of(p.in), name_of(p.out), p.lda, p.ldb, p.ldd, align_a, align_b, align_d));
  plan->algorithm = first.algo;
  plan->workspace = first.workspaceSize;
  return *(plans_[key] = std::move(plan));
}

void Products::multiply(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  CHECK(p.k > 0, "a product over no columns");
  const cudaStream_t stream = device_.stream();
  Plan& plan = plan_for(p);
  if (p.bias) check(cublasLtMatmulDescSetAttribute(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias, sizeof p.bias), "a bias");
  const float one = 1, keep = p.accumulate ? 1 : 0;
  check(cublasLtMatmul(handle_, plan.product, &one, p.a, plan.a, p.b, plan.b, &keep, p.d, plan.d, p.d, plan.d, &plan.algorithm,
                       workspace_->data(), plan.workspace, stream),
        "a product");
}

}  // namespace starling::STARLING_CUDA
