// What the CUDA backend takes for granted, asked of a real card within seconds: uploads, the memory pool, cuBLASLt's products beside a
// naive kernel, NCCL with one rank. Exit status 1 where something is not so.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/cuda/libraries.h"

// As comm/nccl/nccl.h has them, whose other headers nvcc does not take.
namespace starling::cuda {
std::string nccl_problem();
std::string nccl_version();
}  // namespace starling::cuda

namespace {

using Clock = std::chrono::steady_clock;

int failures = 0;
cublasLtHandle_t library;
cudaStream_t stream;
void* workspace;
constexpr size_t kWorkspace = size_t{32} << 20;

double microseconds_since(Clock::time_point begin) { return std::chrono::duration<double, std::micro>(Clock::now() - begin).count(); }

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::printf("probe: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

void verdict(const char* what, bool holds, const std::string& more = "") {
  std::printf("%-58s %s %s\n", what, holds ? "ok" : "FAIL", more.c_str());
  if (!holds) ++failures;
}

template <class... Values>
std::string text(const char* format, Values... values) {
  char line[200];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

__global__ void nothing() {}

__global__ void spin(long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) {
  }
}

// -- products ------------------------------------------------------------------------------------------------------------------------
// d [m, n] = op(a) op(b), column-major, or d += that; then the bias and relu.
struct Product {
  int m, n, k;
  bool transpose_a, transpose_b, bias, relu, accumulate;
  int shift;  // elements by which the addresses are off alignment
  int lda() const { return transpose_a ? k : m; }
  int ldb() const { return transpose_b ? n : k; }
};

template <class In, class Out>
__global__ void naive(Product p, const In* a, const In* b, const Out* bias, const Out* before, float* d, int lda, int ldb) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at >= p.m * p.n) return;
  const long long row = at % p.m, column = at / p.m;
  float sum = 0;
  for (long long l = 0; l < p.k; ++l)
    sum += static_cast<float>(p.transpose_a ? a[l + row * lda] : a[row + l * lda]) *
           static_cast<float>(p.transpose_b ? b[column + l * ldb] : b[l + column * ldb]);
  if (p.accumulate) sum += static_cast<float>(before[at]);
  if (p.bias) sum += static_cast<float>(bias[row]);
  d[at] = p.relu && sum < 0 ? 0 : sum;
}

// Random numbers on the card, the first of which lies `shift` elements behind an aligned address.
template <class T>
class Numbers {
 public:
  Numbers(int count, int shift) : count_(count), shift_(shift) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T& v : values) v = static_cast<T>(static_cast<float>(std::rand() % 2001 - 1000) / 1000);
    require(cudaMalloc(&memory_, sizeof(T) * static_cast<size_t>(count + shift)), "memory");
    require(cudaMemcpy(data(), values.data(), sizeof(T) * values.size(), cudaMemcpyHostToDevice), "a copy");
  }
  ~Numbers() { cudaFree(memory_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  T* data() const { return memory_ + shift_; }
  std::vector<T> read() const {
    std::vector<T> values(static_cast<size_t>(count_));
    require(cudaMemcpy(values.data(), data(), sizeof(T) * values.size(), cudaMemcpyDeviceToHost), "a copy");
    return values;
  }

 private:
  T* memory_ = nullptr;
  int count_, shift_;
};

enum class Outcome { works, no_algorithm, refused, wrong };
constexpr const char* kOutcomes[] = {"works", "NO ALGORITHM", "REFUSED", "WRONG"};
struct Heuristics {
  double microseconds = 0;
  int asked = 0;
} heuristics;

uint32_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

// As products.cpp asks for it; error: the largest, in units of the root mean square.
template <class In, class Out>
Outcome multiply(const Product& p, double& error) {
  const int lda = p.lda(), ldb = p.ldb(), size = p.m * p.n;
  const Numbers<In> a(p.m * p.k, p.shift), b(p.k * p.n, p.shift);
  const Numbers<Out> d(size, p.shift), before(size, 0), bias(p.m, 0);
  const Numbers<float> wanted(size, 0);
  require(cudaMemcpy(d.data(), before.data(), sizeof(Out) * static_cast<size_t>(size), cudaMemcpyDeviceToDevice), "a copy");
  constexpr auto kIn = sizeof(In) == 4 ? CUDA_R_32F : CUDA_R_16BF, kOut = sizeof(Out) == 4 ? CUDA_R_32F : CUDA_R_16BF;
  cublasLtMatmulDesc_t product;
  cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const auto set = [&](cublasLtMatmulDescAttributes_t what, auto value) {
    cublasLtMatmulDescSetAttribute(product, what, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.bias && p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                     : p.bias         ? CUBLASLT_EPILOGUE_BIAS
                                     : p.relu         ? CUBLASLT_EPILOGUE_RELU
                                                      : CUBLASLT_EPILOGUE_DEFAULT);
  if (p.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.data()));
  cublasLtMatrixLayout_t of_a, of_b, of_d;
  cublasLtMatrixLayoutCreate(&of_a, kIn, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, lda);
  cublasLtMatrixLayoutCreate(&of_b, kIn, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, ldb);
  cublasLtMatrixLayoutCreate(&of_d, kOut, p.m, p.n, p.m);
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulPreferenceCreate(&preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(a.data()));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(b.data()));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(d.data()));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(d.data()));
  cublasLtMatmulHeuristicResult_t first{};
  int found = 0;
  const auto begin = Clock::now();
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(library, product, of_a, of_b, of_d, of_d, preference, 1, &first, &found);
  heuristics.microseconds += microseconds_since(begin);
  ++heuristics.asked;
  Outcome outcome = status != CUBLAS_STATUS_SUCCESS || found == 0 ? Outcome::no_algorithm : Outcome::works;
  if (outcome == Outcome::works) {
    const float one = 1, keep = p.accumulate ? 1 : 0;
    naive<<<(size + 255) / 256, 256, 0, stream>>>(p, a.data(), b.data(), bias.data(), before.data(), wanted.data(), lda, ldb);
    status = cublasLtMatmul(library, product, &one, a.data(), of_a, b.data(), of_b, &keep, d.data(), of_d, d.data(), of_d, &first.algo,
                            workspace, first.workspaceSize, stream);
    if (status != CUBLAS_STATUS_SUCCESS) outcome = Outcome::refused;
    require(cudaStreamSynchronize(stream), "a product");
    const std::vector<Out> got = d.read();
    const std::vector<float> want = wanted.read();
    double squares = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      squares += want[i] * want[i];
      largest = std::max(largest, static_cast<double>(std::fabs(static_cast<float>(got[i]) - want[i])));
    }
    error = largest / (std::sqrt(squares / static_cast<double>(want.size())) + 1e-9);
    if (outcome == Outcome::works && !(error < (sizeof(Out) == 2 ? 0.03 : 1e-4))) outcome = Outcome::wrong;
  }
  cublasLtMatrixLayoutDestroy(of_a);
  cublasLtMatrixLayoutDestroy(of_b);
  cublasLtMatrixLayoutDestroy(of_d);
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatmulDescDestroy(product);
  return outcome;
}

// Every kind that the backend asks for, odd sizes, addresses that are aligned to one element.
void probe_products() {
  constexpr std::array<std::array<int, 3>, 9> kSizes{{{17, 9, 33},
                                                      {64, 1, 64},
                                                      {1, 64, 64},
                                                      {33, 7, 1},
                                                      {1024, 25, 1024},
                                                      {3072, 256, 1024},
                                                      {1024, 64, 8192},
                                                      {2000, 100, 512},
                                                      {31, 1000, 77}}};
  constexpr const char *kKinds[] = {"forward", "data gradient", "weight gradient"}, *kTypes[] = {"f32", "bf16", "bf16 to f32"},
                       *kExtras[] = {"plain", "bias", "bias and relu", "added"};
  int counts[4] = {}, tried = 0;
  for (const auto& [m, n, k] : kSizes)
    for (int kind = 0; kind < 3; ++kind)
      for (int types = 0; types < 3; ++types)
        for (int extra = 0; extra < 4; ++extra)
          for (const int shift : {0, 1, 8}) {
            const Product p{m, n, k, kind == 1, kind == 2, extra == 1 || extra == 2, extra == 2, extra == 3, shift};
            double error = 0;
            const Outcome outcome = types == 0   ? multiply<float, float>(p, error)
                                    : types == 1 ? multiply<__nv_bfloat16, __nv_bfloat16>(p, error)
                                                 : multiply<__nv_bfloat16, float>(p, error);
            ++tried;
            ++counts[static_cast<int>(outcome)];
            if (outcome != Outcome::works && tried - counts[0] <= 24)
              std::printf("  product %d x %d x %d, %s, %s, %s, shift %d: %s, error %.2g\n", m, n, k, kKinds[kind], kTypes[types],
                          kExtras[extra], shift, kOutcomes[static_cast<int>(outcome)], error);
          }
  verdict("cuBLASLt takes every product", counts[0] == tried,
          text("%d tried, %d without algorithm, %d refused, %d wrong; a choice takes %.1f us", tried, counts[1], counts[2], counts[3],
               heuristics.microseconds / heuristics.asked));
}

// -- launches, copies, memory -----------------------------------------------------------------------------------------------------------
void probe_launches() {
  for (int i = 0; i < 100; ++i) nothing<<<1, 32, 0, stream>>>();
  require(cudaStreamSynchronize(stream), "a launch");
  const auto begin = Clock::now();
  for (int i = 0; i < 1000; ++i) nothing<<<1, 32, 0, stream>>>();
  const double host = microseconds_since(begin) / 1000;
  require(cudaStreamSynchronize(stream), "a launch");
  std::printf("launch: %.2f us on the host, %.2f us until done\n", host, microseconds_since(begin) / 1000);
}

// Does a copy wait for the work on the stream, and may its source be used again at once?
void probe_uploads() {
  for (const bool pinned : {true, false})
    for (const size_t bytes : {size_t{32} << 10, size_t{100} << 10, size_t{4} << 20}) {
      std::vector<unsigned char> pageable(bytes), back(bytes);
      void *buffer = nullptr, *there = nullptr;
      require(cudaMallocHost(&buffer, bytes), "pinned memory");
      require(cudaMalloc(&there, bytes), "memory");
      auto* const from = pinned ? static_cast<unsigned char*>(buffer) : pageable.data();
      std::fill(from, from + bytes, 7);
      spin<<<1, 1, 0, stream>>>(40'000'000);
      const auto begin = Clock::now();
      require(cudaMemcpyAsync(there, from, bytes, cudaMemcpyHostToDevice, stream), "a copy");
      const double took = microseconds_since(begin);
      if (!pinned) std::fill(from, from + bytes, 9);
      require(cudaStreamSynchronize(stream), "a copy");
      require(cudaMemcpy(back.data(), there, bytes, cudaMemcpyDeviceToHost), "a copy");
      verdict(
          pinned ? "a copy from pinned memory" : "the source of a pageable copy may be used again",
          std::count(back.begin(), back.end(), 7) == static_cast<long>(bytes),
          text("%zu KiB behind 20 ms of work: the call took %.0f us%s", bytes >> 10, took, took > 5000 ? " (WAITS for the stream)" : ""));
      require(cudaFree(there), "memory");
      require(cudaFreeHost(buffer), "pinned memory");
    }
}

void probe_pool() {
  cudaMemPool_t pool;
  uint64_t keep = UINT64_MAX, before = 0, after = 0;
  void* block = nullptr;
  require(cudaDeviceGetDefaultMemPool(&pool, 0), "the pool");
  require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "the pool");
  require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before), "the pool");
  require(cudaMallocAsync(&block, 4000000, stream), "memory of the pool");
  require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &after), "the pool");
  const auto address = reinterpret_cast<uintptr_t>(block);
  verdict("the pool counts what is taken", after - before >= 4000000 && after - before < 4000000 + 512 && address % 256 == 0,
          text("4000000 bytes count as %llu; address aligned to %llu", static_cast<unsigned long long>(after - before),
               static_cast<unsigned long long>(address & (~address + 1))));
  require(cudaFreeAsync(block, stream), "memory of the pool");
  const cudaError_t result = cudaMallocAsync(&block, size_t{4096} << 30, stream);
  verdict("too much memory is cudaErrorMemoryAllocation", result == cudaErrorMemoryAllocation, cudaGetErrorName(result));
  cudaGetLastError();
}

// -- NCCL with one rank, as wire.cpp makes it ------------------------------------------------------------------------------------------
void probe_nccl() {
  if (const std::string problem = starling::cuda::nccl_problem(); !problem.empty()) {
    std::printf("NCCL: %s\n", problem.c_str());
    return;
  }
  ncclResult_t result = ncclSuccess;
  ncclComm_t comm = nullptr;
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto settle = [&] {
    for (const auto begin = Clock::now(); result == ncclInProgress && microseconds_since(begin) < 2e7;)
      if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) break;
  };
  const auto connect = [&] {
    ncclGetUniqueId(&id);
    comm = nullptr;
    result = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    settle();
    return result == ncclSuccess;
  };
  const auto begin = Clock::now();
  bool good = connect();
  const double took = microseconds_since(begin) / 1e3;
  float* x = nullptr;
  require(cudaMalloc(&x, 4096), "memory");
  if (good) {
    result = ncclAllReduce(x, x, 1024, ncclFloat32, ncclSum, comm, stream);
    settle();
    good = result == ncclSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
  }
  result = ncclCommFinalize(comm);
  settle();
  ncclCommDestroy(comm);
  verdict("NCCL with one rank, not blocking", good, text("version %s, connected in %.0f ms", starling::cuda::nccl_version().c_str(), took));
  // As card_watch.cpp ends them: several at once, each behind work of the card.
  ncclComm_t both[2] = {};
  cudaStream_t streams[2];
  good = true;
  for (int i = 0; i < 2 && good; ++i) {
    require(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "a stream");
    good = connect();
    both[i] = comm;
    spin<<<1, 1, 0, streams[i]>>>(400'000'000);
    if (good) result = ncclAllReduce(x, x, 1024, ncclFloat32, ncclSum, comm, streams[i]);
    settle();
    good = good && result == ncclSuccess;
  }
  const auto abort = Clock::now();
  ncclGroupStart();
  for (const ncclComm_t one : both) good = (one == nullptr || ncclCommAbort(one) == ncclSuccess) && good;
  const ncclResult_t ended = ncclGroupEnd();
  const double answered = microseconds_since(abort) / 1e3;
  for (const cudaStream_t one : streams) require(cudaStreamSynchronize(one), "a stream of NCCL");
  verdict("  and two of them ended in one group", good && (ended == ncclSuccess || ended == ncclInProgress),
          text("%s after %.0f ms, the streams after %.0f ms",
               ended == ncclSuccess      ? "over"
               : ended == ncclInProgress ? "IN PROGRESS"
                                         : ncclGetErrorString(ended),
               answered, microseconds_since(abort) / 1e3));
  require(cudaFree(x), "memory");
}

}  // namespace

int main() {
  int cards = 0, driver = 0, runtime = 0;
  const cudaError_t result = cudaGetDeviceCount(&cards);
  if (result != cudaSuccess || cards == 0) {
    std::printf("probe: no card (%s)\n", cudaGetErrorString(result));
    return 2;
  }
  if (const std::string problem = starling::cuda::cublaslt_problem(); !problem.empty()) {
    std::printf("probe: no cuBLASLt (%s)\n", problem.c_str());
    return 2;
  }
  cudaDeviceProp card;
  require(cudaGetDeviceProperties(&card, 0), "the card's properties");
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  std::printf("%s, %d SMs, L2 %d MB, %zu MiB, shared %zu, driver for CUDA %d, runtime %d, pageable access %d\n", card.name,
              card.multiProcessorCount, card.l2CacheSize >> 20, card.totalGlobalMem >> 20, card.sharedMemPerBlockOptin, driver, runtime,
              card.pageableMemoryAccess);
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  require(cudaMalloc(&workspace, kWorkspace), "memory");
  cublasLtCreate(&library);
  probe_launches();
  probe_uploads();
  probe_pool();
  probe_products();
  probe_nccl();
  require(cudaDeviceSynchronize(), "the end");
  std::printf("probe: %d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
