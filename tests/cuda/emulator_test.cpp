// The emulator finds what a card would do wrong without saying so: each kind of mistake, planted in a small kernel or a few calls.
#include "tests/emulated/emulator.h"

#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "tensor/tensor.h"

namespace starling {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A stream of its own, and memory that is given back.
struct Card {
  Card() {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  ~Card() {
    for (void* p : blocks) EXPECT_EQ(cudaFreeAsync(p, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  template <class T>
  T* memory(size_t n) {
    void* p = nullptr;
    EXPECT_EQ(cudaMallocAsync(&p, n * sizeof(T), stream), cudaSuccess);
    blocks.push_back(p);
    return static_cast<T*>(p);
  }
  template <class T>
  std::vector<T> read(const T* from, size_t n) {
    std::vector<T> to(n);
    EXPECT_EQ(cudaMemcpyAsync(to.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost, stream), cudaSuccess);
    return to;
  }
  template <class T>
  T* placed(const std::vector<T>& values) {
    T* const p = memory<T>(values.size());
    EXPECT_EQ(cudaMemcpyAsync(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream), cudaSuccess);
    return p;
  }
  cudaStream_t stream = nullptr;
  std::vector<void*> blocks;
};

template <class Task>
cudaError_t start(Card& card, void (*kernel)(Task), dim3 grid, dim3 block, size_t shared, Task task) {
  void* arguments[] = {&task};
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, card.stream);
}

struct Reverse {
  int* y;
  bool barrier;
};
// Each thread writes a place of shared memory and reads another thread's.
__global__ void reverse(Reverse t) {
  auto* const places = static_cast<int*>(shared_memory());
  places[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (t.barrier) __syncthreads();
  t.y[threadIdx.x] = places[blockDim.x - 1 - threadIdx.x];
}

TEST(Emulator, AMissingBarrierShowsInEveryOrder) {
  for (uint64_t seed : {1, 2, 3}) {
    set_seed(seed);
    Card card;
    int* const y = card.memory<int>(96);
    for (bool barrier : {true, false}) {
      ASSERT_EQ(start(card, reverse, 1, 96, 96 * 4, Reverse{y, barrier}), cudaSuccess);
      std::vector<int> expected(96);
      for (int i = 0; i < 96; ++i) expected[i] = 95 - i;
      EXPECT_EQ(card.read(y, 96) == expected, barrier) << "seed " << seed;
    }
  }
}

struct Numbers {
  int* y;
  int kind;
};
__global__ void sum_of_lanes(Numbers t) {
  int x = static_cast<int>(threadIdx.x) + 1000 * static_cast<int>(blockIdx.x);
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  t.y[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
TEST(Emulator, LanesExchangeWithinTheirWarp) {
  Card card;
  int* const y = card.memory<int>(3 * 64);
  ASSERT_EQ(start(card, sum_of_lanes, 3, 64, 0, Numbers{y, 0}), cudaSuccess);
  const std::vector<int> sums = card.read(y, 3 * 64);
  for (int b = 0; b < 3; ++b)
    for (int i = 0; i < 64; ++i) EXPECT_EQ(sums[b * 64 + i], i / 32 * 32 * 32 + 31 * 16 + 32000 * b);
}

__global__ void divergent(Numbers t) {
  const bool first = threadIdx.x < 16;
  if (t.kind == 0 && first) __syncthreads();
  if (t.kind == 1 && first) t.y[0] = __shfl_sync(0xffffffffu, 1, 0);
  if (t.kind == 2) t.y[threadIdx.x] = first ? static_cast<int>(__ballot_sync(0xffffffffu, 1)) : __shfl_xor_sync(0xffffffffu, 1, 1);
  if (t.kind == 3) t.y[threadIdx.x] = __shfl_xor_sync(0xffffu, 1, 1);
  if (t.kind == 4 && first) t.y[threadIdx.x] = __shfl_xor_sync(0xffffu, static_cast<int>(threadIdx.x), 1);
}
TEST(Emulator, ThreadsThatDoNotMeetAreNamed) {
  const char* expected[] = {"16 of 64 threads came to __syncthreads", "lanes 0xffff of 0xffffffff came to __shfl_sync",
                            "lanes of a warp meet at", "that leaves it out"};
  for (int kind = 0; kind < 4; ++kind) {
    Card card;
    int* const y = card.memory<int>(64);
    ASSERT_EQ(start(card, divergent, 1, 64, 0, Numbers{y, kind}), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(card.stream), cudaErrorLaunchFailure) << kind;
    EXPECT_THAT(cudaGetErrorString(cudaErrorLaunchFailure), HasSubstr(expected[kind]));
  }
  Card card;  // half a warp may meet by itself
  int* const y = card.memory<int>(64);
  ASSERT_EQ(start(card, divergent, 1, 32, 0, Numbers{y, 4}), cudaSuccess);
  EXPECT_EQ(card.read(y, 2), (std::vector<int>{1, 0}));
}

__global__ void read_shared(Numbers t) { t.y[threadIdx.x] = static_cast<int*>(shared_memory())[threadIdx.x]; }
TEST(Emulator, MemoryBeginsAsNoNumber) {
  Card card;
  int *const y = card.memory<int>(32), *const untouched = card.memory<int>(32);
  ASSERT_EQ(start(card, read_shared, 1, 32, 128, Numbers{y, 0}), cudaSuccess);
  for (const int* p : {y, untouched}) EXPECT_EQ(card.read(p, 32), std::vector<int>(32, -1));
}

#if defined(__SANITIZE_ADDRESS__)
TEST(EmulatorDeathTest, EndsOfMemoryAreWatched) {
  const auto beyond = [](size_t shared, size_t n) {
    Card card;
    int* const y = card.memory<int>(n);
    start(card, read_shared, 1, 32, shared, Numbers{y, 0});
    cudaStreamSynchronize(card.stream);
  };
  EXPECT_DEATH(beyond(124, 32), "heap-buffer-overflow");
  EXPECT_DEATH(beyond(128, 31), "heap-buffer-overflow");
}
#endif

TEST(Emulator, RefusesLaunchesThatACardRefuses) {
  Card card;
  int* const y = card.memory<int>(1024);
  const Numbers task{y, 9};
  EXPECT_EQ(start(card, divergent, 0, 32, 0, task), cudaErrorInvalidConfiguration);
  EXPECT_EQ(start(card, divergent, dim3(1, 65536), 32, 0, task), cudaErrorInvalidConfiguration);
  EXPECT_EQ(start(card, divergent, 1, 1025, 0, task), cudaErrorInvalidConfiguration);
  EXPECT_EQ(start(card, divergent, dim3(1, 65535), 1024, 48 << 10, Numbers{y, 9}), cudaSuccess);
  EXPECT_EQ(start(card, read_shared, 1, 32, (48 << 10) + 1, task), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(reinterpret_cast<const void*>(read_shared), cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(reinterpret_cast<const void*>(read_shared), cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10),
            cudaSuccess);
  EXPECT_EQ(start(card, read_shared, 1, 32, 96 << 10, task), cudaSuccess);
}

TEST(Emulator, EveryThreadChoosesACard) {
  Card card;
  cudaError_t result = cudaSuccess;
  std::thread([&] { result = cudaStreamSynchronize(card.stream); }).join();
  EXPECT_EQ(result, cudaErrorInvalidDevice);
}

TEST(Emulator, CopiesKnowTheHostsMemoryFromTheCards) {
  Card card;
  int* const there = card.memory<int>(8);
  int here[8] = {};
  EXPECT_EQ(cudaMemcpyAsync(here, there, 32, cudaMemcpyHostToDevice, card.stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(there, here, 36, cudaMemcpyHostToDevice, card.stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(here, 0, 4, card.stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(there, here, 32, cudaMemcpyHostToDevice, card.stream), cudaSuccess);
}

TEST(Emulator, APinnedBufferThatIsReusedTooEarlyShows) {
  Card card;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  int* const there = card.memory<int>(2);
  for (int i = 0; i < 2; ++i) {
    *static_cast<int*>(pinned) = 7 + i;
    ASSERT_EQ(cudaMemcpyAsync(there + i, pinned, 4, cudaMemcpyHostToDevice, card.stream), cudaSuccess);
  }
  EXPECT_EQ(card.read(there, 2), (std::vector<int>{8, 8}));  // the first copy saw what came after it
  int pageable = 5;
  ASSERT_EQ(cudaMemcpyAsync(there, &pageable, 4, cudaMemcpyHostToDevice, card.stream), cudaSuccess);
  pageable = 6;
  EXPECT_EQ(card.read(there, 1), std::vector<int>{5});
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

struct Two {
  const int* x;
  int* y;
};
__global__ void copy_beyond(Two t) { t.y[threadIdx.x] = t.x[threadIdx.x]; }
TEST(Emulator, AnAddressOfTheHostsIsNoTask) {
  Card card;
  const std::vector<int> here(32, 3);
  const int* const there = card.placed(here);
  int* const y = card.memory<int>(32);
  EXPECT_EQ(start(card, copy_beyond, 1, 32, 0, Two{here.data(), y}), cudaErrorInvalidValue);
  EXPECT_EQ(start(card, copy_beyond, 1, 32, 0, Two{there, y}), cudaSuccess);
  EXPECT_EQ(card.read(y, 32), here);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(Emulator, WhatIsWrittenBehindABlockShowsWhenItIsFreed) {
  Card card;
  const int* const x = card.placed(std::vector<int>(64, 3));
  void* y = nullptr;
  ASSERT_EQ(cudaMallocAsync(&y, 33 * sizeof(int), card.stream), cudaSuccess);
  ASSERT_EQ(start(card, copy_beyond, 1, 64, 0, Two{x, static_cast<int*>(y)}), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(y, card.stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(card.stream), cudaErrorLaunchFailure);
  EXPECT_THAT(cudaGetErrorString(cudaErrorLaunchFailure), HasSubstr("behind the end"));
}
#endif

__global__ void write_kind(Numbers t) { *t.y = t.kind; }
TEST(Emulator, AMissingEventBetweenStreamsShows) {
  Card first, second;
  int* const there = first.memory<int>(1);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  int seen = 0;
  for (int i = 0; i < 40; ++i)
    for (bool wait : {false, true}) {
      start(first, write_kind, 1, 1, 0, Numbers{there, -1});
      cudaStreamSynchronize(first.stream);
      start(first, write_kind, 1, 1, 0, Numbers{there, i});
      cudaEventRecord(event, first.stream);
      if (wait) cudaStreamWaitEvent(second.stream, event);
      int got = 0;
      ASSERT_EQ(cudaMemcpyAsync(&got, there, 4, cudaMemcpyDeviceToHost, second.stream), cudaSuccess);
      if (wait)
        ASSERT_EQ(got, i);
      else
        seen += got != i;
      cudaStreamSynchronize(first.stream);
    }
  EXPECT_GT(seen, 0) << "without waiting, the other stream was never seen to be late";
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

// y [3, 2] = x [3, 5] w [5, 2], row-major, as the backend asks for it.
struct Lt {
  Lt(int64_t rows_a, int64_t columns_a, int64_t rows_d, int64_t columns_d, cudaDataType_t in, cudaDataType_t out) {
    cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&a, in, static_cast<uint64_t>(rows_a), static_cast<uint64_t>(columns_a), rows_a);
    cublasLtMatrixLayoutCreate(&b, in, 5, 3, 5);
    cublasLtMatrixLayoutCreate(&d, out, static_cast<uint64_t>(rows_d), static_cast<uint64_t>(columns_d), rows_d);
    cublasLtMatmulPreferenceCreate(&preference);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  }
  ~Lt() {
    for (cublasLtMatrixLayout_t m : {a, b, d}) cublasLtMatrixLayoutDestroy(m);
    cublasLtMatmulDescDestroy(product), cublasLtMatmulPreferenceDestroy(preference);
  }
  void set(cublasLtMatmulPreferenceAttributes_t attribute, uint32_t value) {
    cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  }
  cublasStatus_t choose() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(nullptr, product, a, b, d, d, preference, 1, &chosen, &found);
  }
  cublasStatus_t multiply(Card& card, const float* x, const float* w, float* y) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(nullptr, product, &one, w, a, x, b, &zero, y, d, y, d, &chosen.algo, nullptr, 0, card.stream);
  }
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};
};

TEST(Emulator, ProductsFollowTheLibrarysRules) {
  Card card;
  std::vector<float> x(15), w(11);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (size_t i = 0; i < 10; ++i) w[i] = static_cast<float>(i * i);
  const float *const px = card.placed(x), *const pw = card.placed(w);
  float* const y = card.memory<float>(8);
  Lt good(2, 5, 2, 3, CUDA_R_32F, CUDA_R_32F);
  ASSERT_EQ(good.choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(good.multiply(card, px, pw, y), CUBLAS_STATUS_SUCCESS);
  std::vector<float> expected(6);
  for (int n = 0; n < 3; ++n)
    for (int m = 0; m < 2; ++m)
      for (int k = 0; k < 5; ++k) expected[n * 2 + m] += x[n * 5 + k] * w[k * 2 + m];
  EXPECT_EQ(card.read(y, 6), expected);

  EXPECT_EQ(Lt(5, 2, 2, 3, CUDA_R_32F, CUDA_R_32F).choose(), CUBLAS_STATUS_NOT_SUPPORTED) << "sizes swapped";
  EXPECT_EQ(Lt(2, 5, 3, 2, CUDA_R_32F, CUDA_R_32F).choose(), CUBLAS_STATUS_NOT_SUPPORTED) << "outputs swapped";
  EXPECT_EQ(Lt(2, 5, 2, 3, CUDA_R_32F, CUDA_R_16BF).choose(), CUBLAS_STATUS_NOT_SUPPORTED) << "f32 into bf16";
  // An algorithm that was chosen for addresses of 256 bytes does not take others.
  EXPECT_EQ(good.multiply(card, px, pw + 1, y), CUBLAS_STATUS_INVALID_VALUE);
  good.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4);
  ASSERT_EQ(good.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(good.multiply(card, px, pw + 1, y), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(card.stream), cudaSuccess);
  // The host's memory, and what is not there.
  EXPECT_EQ(good.multiply(card, px + 4, pw, y), CUBLAS_STATUS_INVALID_VALUE);
  good.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4);
  ASSERT_EQ(good.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(good.multiply(card, px + 4, pw, y), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(card.stream), cudaErrorLaunchFailure);
  EXPECT_THAT(cudaGetErrorString(cudaErrorLaunchFailure), HasSubstr("outside the card's memory"));
  // So is a workspace that was asked for, on the card when the product is computed.
  const size_t workspace = 1 << 20;
  cublasLtMatmulPreferenceSetAttribute(good.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  ASSERT_EQ(good.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(good.multiply(card, px, pw, y), CUBLAS_STATUS_INVALID_VALUE);
  const float one = 1, zero = 0;
  std::vector<char> here(good.chosen.workspaceSize);
  EXPECT_EQ(cublasLtMatmul(nullptr, good.product, &one, pw, good.a, px, good.b, &zero, y, good.d, y, good.d, &good.chosen.algo, here.data(),
                           here.size(), card.stream),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(card.stream), cudaErrorLaunchFailure);
  EXPECT_THAT(cudaGetErrorString(cudaErrorLaunchFailure), HasSubstr("a workspace of"));
  // A bias must be there, and partial sums stay in f32.
  const auto epilogue = CUBLASLT_EPILOGUE_BIAS;
  cublasLtMatmulDescSetAttribute(good.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  ASSERT_EQ(good.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(good.multiply(card, px, pw, y), CUBLAS_STATUS_INVALID_VALUE);
  good.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  EXPECT_THAT([&] { good.choose(); }, ThrowsMessage<Error>(HasSubstr("in the output's type")));
}

}  // namespace
}  // namespace starling
