// A queue of work that one other thread does later, in order, and a memory behind it: together what a device with a stream of its own looks
// like from the host. For tests of everything above the backend.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "tensor/memory.h"

namespace starling {

class WorkQueue {
 public:
  WorkQueue() : thread_([this] { work(); }) {}
  // Does what is left. A failure that nobody has waited for fails the test.
  ~WorkQueue();
  // After everything pushed before, and not before somebody waits or kMany wait for their turn. Once something has thrown, only what is
  // `always` to be done is done, until somebody has waited.
  void push(std::function<void()> body, bool always = false);
  // Until everything pushed so far is done; throws what that has thrown.
  void wait();
  // The same without throwing: what was thrown is still to come out.
  void finish();

  static constexpr size_t kMany = 256;

 private:
  struct Item {
    std::function<void()> body;
    bool always;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable asked_for_, done_;
  std::deque<Item> items_;
  int64_t pushed_ = 0, finished_ = 0, asked_ = 0;  // of all items
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

// Not the host's as far as tensors know. Everything that touches it goes through the queue, releases too, in order. What is released or
// discarded is overwritten with ones (NaN as floats, -1 as integers), and what an op reads by mistake is found.
class QueuedMemory : public Memory {
 public:
  explicit QueuedMemory(WorkQueue& queue) : queue_(queue) {}
  // A tensor that outlives its memory ends the program.
  ~QueuedMemory() override;
  bool host() const override { return false; }
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* at, int64_t bytes) override;
  void zero(std::byte* at, int64_t bytes) override;
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  void upload(std::byte* to, const std::byte* from, int64_t bytes) override;
  void download(std::byte* to, const std::byte* from, int64_t bytes) override;
  void discard(std::byte* at, int64_t bytes) override;

 private:
  WorkQueue& queue_;
  std::atomic<int64_t> blocks_ = 0;
};

}  // namespace starling
