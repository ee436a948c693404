// A card as a backend and its siblings share it: the stream that orders all their work, and the card's memory.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "backend/cuda/kernels/tasks.h"
#include "tensor/tensor.h"

namespace starling::STARLING_CUDA {

class CudaDevice;

// The card's memory. Blocks come from the driver's pool and return to it in stream order, so that releasing never waits. Arrays of a batch
// go through pinned buffers, so that the host does not wait for the copy, and so do small results, since a copy to other memory takes
// longer.
class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(CudaDevice& device);
  ~CudaMemory() override;
  bool host() const override { return false; }
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* at, int64_t bytes) override;
  void zero(std::byte* at, int64_t bytes) override;
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  void upload(std::byte* to, const std::byte* from, int64_t bytes) override;
  void download(std::byte* to, const std::byte* from, int64_t bytes) override;
  UsableMemory usable() const override;
  int64_t taken() const;  // of the pool, by this process
  void discard(std::byte* at, int64_t bytes) override;
  CudaDevice& device() const { return device_; }

 private:
  // A pinned buffer, which is free again once its copy has reached the card.
  struct Slot {
    void* pinned = nullptr;
    cudaEvent_t copied = nullptr;
  };
  template <size_t N>
  struct Ring {
    std::array<Slot, N> slots{};
    size_t last = 0;
    Slot& next() { return slots[++last % N]; }
  };
  void send(std::byte* to, const std::byte* from, int64_t bytes, Slot& slot, int64_t size);

  CudaDevice& device_;
  std::mutex mutex_;
  Ring<64> small_;  // 64 KiB each, for indices of a batch
  Ring<16> large_;  // 1 MiB each, for long lists and weights that are loaded: the lists of several micro-batches
  std::mutex download_mutex_;
  void* arrived_ = nullptr;  // pinned, for what decoding reads at every step
};

// One card, with its stream and its memory.
class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
 public:
  explicit CudaDevice(int number);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  // The stream, after making the card current for this thread.
  cudaStream_t stream() const;
  cudaMemPool_t pool() const { return pool_; }
  CudaMemory& memory() { return memory_; }
  const cudaDeviceProp& properties() const { return properties_; }
  // Reports that work that others put on this card has failed: its results are worthless, and from now on reading throws this error. May be
  // called from any thread.
  void fail(std::exception_ptr error);
  void require_sound() const;

 private:
  int number_;
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  cudaDeviceProp properties_{};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  CudaMemory memory_{*this};
};

}  // namespace starling::STARLING_CUDA
