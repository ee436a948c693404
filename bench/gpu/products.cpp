// What cuBLASLt has for the products of an update of the big Transformer: whether its first answer depends on the alignment that it is
// told, how fast its first eight answers are, and what a vocabulary costs that 8 does not divide. Usage: products [TOKENS [SECONDS]]
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cuda/libraries.h"

namespace {

constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kAnswers = 8, kTimes = 10;
cublasLtHandle_t library;
cudaStream_t stream;

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::printf("products: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

// d [m, n] = op(a) op(b), column-major, as src/backend/cuda/products.cpp asks for it: rows of activations are columns here.
struct Product {
  std::string name;
  int64_t m, n, k;
  bool transpose_a, transpose_b, f32, added;  // f32: the result; added: to what is there
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// A layer [in, out] on so many rows: forward, gradient of the input, gradient of the weights.
void add_layer(std::vector<Product>& all, const std::string& name, int64_t in, int64_t out, int64_t rows, bool logits = false) {
  all.push_back({name + ", forward", out, rows, in, logits, false, logits, false});
  all.push_back({name + ", input's gradient", in, rows, out, !logits, false, false, false});
  all.push_back({name + ", weights' gradient", logits ? in : out, logits ? out : in, rows, false, true, true, true});
}

class Asked {
 public:
  explicit Asked(const Product& p) : p_(p) {
    cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    const auto layout = [](cublasLtMatrixLayout_t& to, cudaDataType_t type, int64_t rows, int64_t columns) {
      cublasLtMatrixLayoutCreate(&to, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows);
    };
    layout(a_, CUDA_R_16BF, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
    layout(b_, CUDA_R_16BF, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
    layout(d_, p.f32 ? CUDA_R_32F : CUDA_R_16BF, p.m, p.n);
  }
  ~Asked() {
    for (cublasLtMatrixLayout_t layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  std::vector<cublasLtMatmulHeuristicResult_t> answers(uint32_t alignment, int most) const {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulPreferenceCreate(&preference);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
      cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(which, alignment);
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(library, product_, a_, b_, d_, d_, preference, most, found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(count) : 0);
    return found;
  }

  // Milliseconds of one of several in turn; negative: refused.
  double milliseconds(const cublasLtMatmulHeuristicResult_t& answer, const void* a, const void* b, void* d, void* workspace) const {
    const float one = 1, keep = p_.added ? 1 : 0;
    cudaEvent_t begin, end;
    require(cudaEventCreate(&begin), "an event");
    require(cudaEventCreate(&end), "an event");
    float took = -1;
    bool good = true;
    for (int i = -2; i < kTimes && good; ++i) {
      if (i == 0) require(cudaEventRecord(begin, stream), "an event");
      good = cublasLtMatmul(library, product_, &one, a, a_, b, b_, &keep, d, d_, d, d_, &answer.algo, workspace, answer.workspaceSize,
                            stream) == CUBLAS_STATUS_SUCCESS;
    }
    require(cudaEventRecord(end, stream), "an event");
    require(cudaStreamSynchronize(stream), "a product");
    if (good) require(cudaEventElapsedTime(&took, begin, end), "a time");
    cudaEventDestroy(begin), cudaEventDestroy(end);
    return good ? took / kTimes : -1;
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t what, T value) {
    cublasLtMatmulDescSetAttribute(product_, what, &value, sizeof value);
  }
  const Product& p_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

bool same(const std::vector<cublasLtMatmulHeuristicResult_t>& a, const std::vector<cublasLtMatmulHeuristicResult_t>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(&a[0].algo, &b[0].algo, sizeof a[0].algo) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t tokens = argc > 1 ? std::atoll(argv[1]) : 25024, chunk = 4160;
  const double most_seconds = argc > 2 ? std::atof(argv[2]) : 60;
  int cards = 0;
  if (cudaGetDeviceCount(&cards) != cudaSuccess || cards == 0 || !starling::cuda::cublaslt_problem().empty()) {
    std::printf("products: no card, or no cuBLASLt\n");
    return 2;
  }
  std::vector<Product> layers, vocabularies, others;
  add_layer(layers, "queries, keys, values", 1024, 3072, tokens);
  add_layer(layers, "keys, values", 1024, 2048, tokens);
  add_layer(layers, "queries or output", 1024, 1024, tokens);
  add_layer(layers, "feed-forward, inner", 1024, 4096, tokens);
  add_layer(layers, "feed-forward, outer", 4096, 1024, tokens);
  for (const int64_t v : {31999, 32000}) add_layer(vocabularies, "vocabulary of " + std::to_string(v), 1024, v, chunk, true);
  for (const int64_t rows : {16, 64, 256}) add_layer(others, "decoding " + std::to_string(rows) + " rows", 512, 2048, rows);

  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  cublasLtCreate(&library);
  void *a = nullptr, *b = nullptr, *d = nullptr, *workspace = nullptr;
  int64_t elements = 0;
  for (const auto* all : {&layers, &vocabularies, &others})
    for (const Product& p : *all) elements = std::max({elements, p.m * p.k, p.k * p.n, p.m * p.n});
  for (void** const memory : {&a, &b}) {
    require(cudaMalloc(memory, 2 * static_cast<size_t>(elements)), "memory");
    require(cudaMemset(*memory, 0x3c, 2 * static_cast<size_t>(elements)), "memory");  // no zeros, which are faster
  }
  require(cudaMalloc(&d, 4 * static_cast<size_t>(elements)), "memory");
  require(cudaMemset(d, 0, 4 * static_cast<size_t>(elements)), "memory");
  require(cudaMalloc(&workspace, kWorkspace), "memory");

  int shapes = 0, differ = 0;
  for (const auto* all : {&layers, &vocabularies, &others})
    for (const Product& p : *all) {
      const Asked asked(p);
      const auto least = asked.answers(16, 1);
      const bool equal = same(least, asked.answers(64, 1)) && same(least, asked.answers(256, 1));
      ++shapes, differ += !equal;
      if (!equal) std::printf("%s: another answer for addresses at 64 or 256 bytes\n", p.name.c_str());
    }

  const auto begin = std::chrono::steady_clock::now();
  double first_ms = 0, best_ms = 0, flops = 0, of[2] = {};
  std::printf("%-40s %6s %9s %9s %7s   %s\n", "product", "ms", "TFLOP/s", "best", "answer", "all, ms");
  for (const auto* all : {&layers, &vocabularies})
    for (const Product& p : *all) {
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > most_seconds) break;
      const Asked asked(p);
      std::vector<double> ms;
      // As the backend's addresses are told, which is odd for rows that 8 does not divide.
      for (const auto& answer : asked.answers(16, kAnswers)) ms.push_back(asked.milliseconds(answer, a, b, d, workspace));
      if (ms.empty() || ms[0] < 0) {
        std::printf("%-40s no answer, or the first is refused\n", p.name.c_str());
        continue;
      }
      size_t best = 0;
      for (size_t i = 0; i < ms.size(); ++i)
        if (ms[i] > 0 && ms[i] < ms[best]) best = i;
      std::string times;
      for (const double t : ms) times += " " + std::to_string(t).substr(0, 6);
      std::printf("%-40s %6.3f %9.0f %9.0f %7zu  %s\n", p.name.c_str(), ms[0], p.flops() / ms[0] / 1e9, p.flops() / ms[best] / 1e9, best,
                  times.c_str());
      if (all == &layers)
        first_ms += ms[0], best_ms += ms[best], flops += p.flops();
      else
        of[p.name.find("32000") != std::string::npos] += ms[0];
    }
  std::printf(
      "answers differ by alignment for %d of %d shapes; layers %.0f TFLOP/s by the first answers, %.0f by the best; output, three "
      "products of %lld rows: %.2f ms with 31,999 pieces, %.2f with 32,000\n",
      differ, shapes, first_ms > 0 ? flops / first_ms / 1e9 : 0, best_ms > 0 ? flops / best_ms / 1e9 : 0, static_cast<long long>(chunk),
      of[0], of[1]);
  return 0;
}
