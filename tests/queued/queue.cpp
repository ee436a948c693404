#include "tests/queued/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"

namespace starling {

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_for_.notify_all();
  thread_.join();
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "a queued op failed and nobody waited for it: " << e.what();
  }
}

void WorkQueue::push(std::function<void()> body, bool always) {
  const std::lock_guard lock(mutex_);
  items_.push_back({std::move(body), always});
  ++pushed_;
  if (items_.size() < kMany) return;
  asked_ = pushed_;
  asked_for_.notify_all();
}

void WorkQueue::wait() {
  finish();
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void WorkQueue::finish() {
  std::unique_lock lock(mutex_);
  const int64_t target = pushed_;
  asked_ = std::max(asked_, target);
  asked_for_.notify_all();
  done_.wait(lock, [&] { return finished_ >= target; });
}

void WorkQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_for_.wait(lock, [&] { return ending_ || finished_ < asked_; });
    if (items_.empty()) {
      if (ending_) return;
      continue;
    }
    Item item = std::move(items_.front());
    items_.pop_front();
    const bool skipped = failure_ && !item.always;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!skipped) item.body();
    } catch (...) {
      failure = std::current_exception();
    }
    item = {};  // what it holds is released before anybody hears that it is done
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (++finished_ >= asked_) done_.notify_all();
  }
}

QueuedMemory::~QueuedMemory() {
  if (blocks_ == 0) return;
  fmt::print(stderr, "{} tensors outlive the backend in whose memory they lie\n", blocks_.load());
  std::abort();  // they would be released into nothing
}

std::byte* QueuedMemory::allocate(int64_t bytes) {
  ++blocks_;
  return host_memory().allocate(bytes);
}

void QueuedMemory::release(std::byte* at, int64_t bytes) {
  --blocks_;
  const auto body = [=] {
    std::memset(at, 0xff, static_cast<size_t>(bytes));
    host_memory().release(at, bytes);
  };
  queue_.push(body, true);
}

void QueuedMemory::zero(std::byte* at, int64_t bytes) {
  queue_.push([=] { std::memset(at, 0, static_cast<size_t>(bytes)); });
}

void QueuedMemory::discard(std::byte* at, int64_t bytes) {
  queue_.push([=] { std::memset(at, 0xff, static_cast<size_t>(bytes)); });
}

void QueuedMemory::copy(std::byte* to, const std::byte* from, int64_t bytes) {
  queue_.push([=] { std::copy_n(from, bytes, to); });  // of no bytes the addresses may be null
}

void QueuedMemory::upload(std::byte* to, const std::byte* from, int64_t bytes) {
  queue_.push([to, all = std::vector<std::byte>(from, from + bytes)] { std::copy(all.begin(), all.end(), to); });
}

void QueuedMemory::download(std::byte* to, const std::byte* from, int64_t bytes) {
  queue_.push([=] { std::copy_n(from, bytes, to); });
  queue_.wait();
}

}  // namespace starling
