// A card as one backend and its siblings share it: the stream that orders all their work, and the memory behind it.
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

// Blocks come from the driver's pool and go back to it in the order of the stream, so that releasing never waits. Numbers of a batch go
// through pinned buffers, so that the host does not wait for the copy.
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
  void discard(std::byte* at, int64_t bytes) override;
  CudaDevice& device() const { return device_; }

 private:
  // A pinned buffer, which is free again when its copy has come to the card.
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
  Ring<64> small_;  // of 64 KiB: indices of a batch
  Ring<4> large_;   // of 4 MiB: long lists, weights that are read
};

class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
 public:
  explicit CudaDevice(int number);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  // For a call of this thread.
  cudaStream_t stream() const;
  cudaMemPool_t pool() const { return pool_; }
  CudaMemory& memory() { return memory_; }
  const cudaDeviceProp& properties() const { return properties_; }
  // Work that others put on this card has failed, and what was computed is of no use: reading throws this from now on. From any thread.
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
