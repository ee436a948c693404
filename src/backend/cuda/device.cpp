#include "backend/cuda/device.h"

#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "backend/cuda/cuda.h"
#include "backend/cuda/libraries.h"
#include "base/error.h"

namespace starling::STARLING_CUDA {
namespace {

// Uploads go through pinned buffers, since a copy from other memory waits for the work on the stream.
constexpr int64_t kSmall = int64_t{64} << 10, kLarge = int64_t{1} << 20;
constexpr int64_t kDownload = int64_t{256} << 10;  // larger ones are rare, and bound by the link

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) throw Error(fmt::format("CUDA, {}: {} ({})", what, cudaGetErrorString(result), cudaGetErrorName(result)));
}

void kernels::allow_shared_memory(const void* kernel) {
  static std::mutex mutex;
  static std::set<std::pair<int, const void*>> allowed;  // on a card
  int card = 0, most = 0;
  check(cudaGetDevice(&card), "which card");
  const std::lock_guard lock(mutex);
  if (allowed.contains({card, kernel})) return;
  cudaFuncAttributes its{};
  check(cudaFuncGetAttributes(&its, kernel), "a kernel's attributes");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, card), "a card's shared memory");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - static_cast<int>(its.sharedSizeBytes)),
        "shared memory");
  allowed.emplace(card, kernel);
}

CudaDevice::CudaDevice(int number) : number_(number) {
  const int devices = cuda_devices();
  if (devices == 0) throw ConfigError(describe_cuda() + "; compute on the processor with --device cpu");
  if (number < 0 || number >= devices)
    throw ConfigError(
        fmt::format("there is no card {}: this process can use {}, counted from 0 (CUDA_VISIBLE_DEVICES chooses)", number, devices));
  check(cudaSetDevice(number), "choosing a card");
  check(cudaGetDeviceProperties(&properties_, number), "asking for its properties");
  if (properties_.major < 8)
    throw ConfigError(fmt::format("card {}, {}, is of compute capability {}.{}; Ampere (8.0) or newer is needed", number, properties_.name,
                                  properties_.major, properties_.minor));
  // Released memory stays in the pool, since the next step asks for as much.
  uint64_t threshold = UINT64_MAX;
  check(cudaDeviceGetDefaultMemPool(&pool_, number), "its memory pool");
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold), "its memory pool");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
}

CudaDevice::~CudaDevice() {
  cudaStreamSynchronize(stream());
  cudaStreamDestroy(stream_);
}

cudaStream_t CudaDevice::stream() const {
  thread_local int here = -1;
  if (here != number_) {
    check(cudaSetDevice(number_), "choosing a card");
    here = number_;
  }
  return stream_;
}

void CudaDevice::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
}

void CudaDevice::require_sound() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

CudaMemory::CudaMemory(CudaDevice& device) : device_(device) {}

CudaMemory::~CudaMemory() {
  const auto end = [](const Slot& slot) {
    if (slot.pinned == nullptr) return;
    cudaEventSynchronize(slot.copied);
    cudaEventDestroy(slot.copied);
    cudaFreeHost(slot.pinned);
  };
  for (const Slot& slot : small_.slots) end(slot);
  for (const Slot& slot : large_.slots) end(slot);
  cudaFreeHost(arrived_);
}

std::byte* CudaMemory::allocate(int64_t bytes) {
  void* at = nullptr;
  const cudaError_t result = cudaMallocAsync(&at, static_cast<size_t>(std::max<int64_t>(bytes, 1)), device_.stream());
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(
        fmt::format("out of memory on {}: {} MiB were asked for, {} of {} MiB are free; compute fewer tokens at once "
                    "(train.micro-batch-tokens, --batch-tokens, --batch-size), use shorter sentences or a smaller model",
                    device_.properties().name, bytes >> 20, usable().bytes >> 20, device_.properties().totalGlobalMem >> 20));
  }
  check(result, "memory of the card");
  const auto place = static_cast<std::byte*>(at);
  zero(place, bytes);
  return place;
}

void CudaMemory::release(std::byte* at, int64_t) { cudaFreeAsync(at, device_.stream()); }

void CudaMemory::zero(std::byte* at, int64_t bytes) {
  if (bytes > 0) check(cudaMemsetAsync(at, 0, static_cast<size_t>(bytes), device_.stream()), "zeros");
}

void CudaMemory::copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, device_.stream()), "a copy");
}

void CudaMemory::upload(std::byte* to, const std::byte* from, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (int64_t n = 0; bytes > 0; to += n, from += n, bytes -= n) {
    n = std::min(bytes, kLarge);
    if (n > kSmall)
      send(to, from, n, large_.next(), kLarge);
    else
      send(to, from, n, small_.next(), kSmall);
  }
}

void CudaMemory::send(std::byte* to, const std::byte* from, int64_t bytes, Slot& slot, int64_t size) {
  const cudaStream_t stream = device_.stream();
  if (slot.pinned == nullptr) {
    check(cudaMallocHost(&slot.pinned, static_cast<size_t>(size)), "pinned memory");
    check(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming), "an event");
  } else {
    check(cudaEventSynchronize(slot.copied), "the work so far");
  }
  std::memcpy(slot.pinned, from, static_cast<size_t>(bytes));
  check(cudaMemcpyAsync(to, slot.pinned, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream), "a copy to the card");
  check(cudaEventRecord(slot.copied, stream), "an event");
}

// With STARLING_POISON=1 in the environment, for tests: overwrites dead memory, since zeros would hide that it is read again.
void CudaMemory::discard(std::byte* at, int64_t bytes) {
  static const bool poisons = [] {
    const char* asked = std::getenv("STARLING_POISON");
    return asked != nullptr && *asked == '1';
  }();
  if (poisons && bytes > 0) check(cudaMemsetAsync(at, 0xff, static_cast<size_t>(bytes), device_.stream()), "what is not used any more");
}

void CudaMemory::download(std::byte* to, const std::byte* from, int64_t bytes) {
  const cudaStream_t stream = device_.stream();
  std::unique_lock lock(download_mutex_, std::defer_lock);
  const bool pinned = bytes > 0 && bytes <= kDownload && lock.try_lock();  // else another thread's is in the buffer
  if (pinned && arrived_ == nullptr) check(cudaMallocHost(&arrived_, static_cast<size_t>(kDownload)), "pinned memory");
  void* const place = pinned ? arrived_ : to;
  if (bytes > 0) check(cudaMemcpyAsync(place, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream), "a copy from the card");
  const cudaError_t result = cudaStreamSynchronize(stream);
  device_.require_sound();
  check(result, "the work so far");
  if (pinned) std::memcpy(to, arrived_, static_cast<size_t>(bytes));
}

UsableMemory CudaMemory::usable() const {
  device_.stream();  // the card, for this thread
  size_t free = 0, total = 0;
  uint64_t reserved = 0;  // by the pool, which keeps what is released
  check(cudaMemGetInfo(&free, &total), "its free memory");
  check(cudaMemPoolGetAttribute(device_.pool(), cudaMemPoolAttrReservedMemCurrent, &reserved), "its memory pool");
  return {static_cast<int64_t>(free + reserved) - taken(),
          fmt::format("the memory of {} ({} MiB)", device_.properties().name, total >> 20)};
}

int64_t CudaMemory::taken() const {
  device_.stream();  // the card, for this thread
  uint64_t used = 0;
  check(cudaMemPoolGetAttribute(device_.pool(), cudaMemPoolAttrUsedMemCurrent, &used), "its memory pool");
  return static_cast<int64_t>(used);
}

bool has_cuda() { return true; }

int64_t bytes_taken(const Memory& card) { return dynamic_cast<const CudaMemory&>(card).taken(); }

int cuda_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && cublaslt_problem().empty() ? count : 0;
}

std::string describe_cuda() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  const std::string libraries = fmt::format("CUDA {}", version_text(runtime));
  if (driver == 0) return fmt::format("no NVIDIA card can be used: NVIDIA's driver is not installed ({})", libraries);
  if (result == cudaErrorInsufficientDriver)
    return fmt::format("no NVIDIA card can be used: the driver is for CUDA {}, and this program needs one for CUDA {} or newer",
                       version_text(driver), version_text(runtime));
  if (result != cudaSuccess || count == 0)
    return fmt::format("no NVIDIA card can be used: {} ({}, driver for CUDA {})",
                       result == cudaSuccess ? "there is none" : cudaGetErrorString(result), libraries, version_text(driver));
  if (const std::string problem = cublaslt_problem(); !problem.empty())
    return fmt::format(
        "no NVIDIA card can be used: cuBLASLt was not found ({}); install it (CUDA's package libcublas, or pip's {}), or add "
        "its directory to LD_LIBRARY_PATH",
        problem, runtime / 1000 < 13 ? fmt::format("nvidia-cublas-cu{}", runtime / 1000) : "nvidia-cublas");
  std::string cards;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, i), "the properties of a card");
    cards += fmt::format("{}{}: {}, {} GiB", i > 0 ? "; " : "", i, p.name, p.totalGlobalMem >> 30);
  }
  return fmt::format("{}; {}, driver for CUDA {}", cards, libraries, version_text(driver));
}

}  // namespace starling::STARLING_CUDA
