// A stream of items that one thread produces, several process and the caller consumes in order. The number of items in flight is fixed,
// so memory is bounded, and the outcome does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_threads.h"

namespace starling {

template <class Item>
struct PipelineSteps {
  std::function<bool(Item&)> make;  // fills an item, which may still hold an earlier one; false: there are no more
  std::function<void(Item&)> work;  // called by several threads, each with an item of its own
  std::function<void(Item&)> take;  // called on the caller's thread, in the order of make
};

/// Runs the steps until `make` returns false or one of them throws; items before the first failure are taken, then it is rethrown.
template <class Item>
class OrderedPipeline {
 public:
  // Throws ConfigError if the system cannot start the minimum of two threads; fewer threads than requested are not a failure.
  OrderedPipeline(PipelineSteps<Item> steps, int threads, size_t items) : steps_(std::move(steps)), slots_(items) {
    try {
      threads_.push_back(start_thread("reading", [this] { make_all(); }));
      for (int i = 0; i < std::max(threads, 1); ++i) threads_.push_back(start_thread("working on what is read", [this] { work_all(); }));
    } catch (...) {
      if (threads_.size() >= 2) return;
      stop();
      throw;
    }
  }
  ~OrderedPipeline() { stop(); }
  OrderedPipeline(const OrderedPipeline&) = delete;
  OrderedPipeline& operator=(const OrderedPipeline&) = delete;

  void run() {
    for (uint64_t i = 0;; ++i) {
      Slot& slot = slots_[i % slots_.size()];
      if (!wait(slot, State::worked)) return;
      if (slot.failure) std::rethrow_exception(slot.failure);
      if (slot.end) return;
      steps_.take(slot.item);
      set(slot, State::empty);
    }
  }

 private:
  enum class State { empty, made, worked };
  struct Slot {
    Item item;
    State state = State::empty;
    bool end = false;
    std::exception_ptr failure;
  };

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  // Returns false if the pipeline was stopped.
  bool wait(const Slot& slot, State state) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || slot.state == state; });
    return !stopped_;
  }
  void set(Slot& slot, State state) {
    {
      const std::lock_guard lock(mutex_);
      slot.state = state;
      if (state == State::made) ++made_;
      if (slot.end) ended_ = true;
    }
    changed_.notify_all();
  }
  void make_all() {
    for (uint64_t i = 0;; ++i) {
      Slot& slot = slots_[i % slots_.size()];
      if (!wait(slot, State::empty)) return;
      try {
        slot.end = !steps_.make(slot.item);
      } catch (...) {
        slot.failure = std::current_exception();
        slot.end = true;
      }
      set(slot, slot.end ? State::worked : State::made);
      if (slot.end) return;
    }
  }
  void work_all() {
    while (true) {
      Slot* slot = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || next_ < made_ || ended_; });
        if (stopped_ || next_ == made_) return;
        slot = &slots_[next_++ % slots_.size()];
      }
      try {
        steps_.work(slot->item);
      } catch (...) {
        slot->failure = std::current_exception();
      }
      set(*slot, State::worked);
    }
  }

  PipelineSteps<Item> steps_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, ended_ = false;  // by the caller; by make
  uint64_t made_ = 0, next_ = 0;          // items made; the one that the next free worker takes
  std::vector<std::thread> threads_;
};

template <class Item>
void run_in_order(PipelineSteps<Item> steps, int threads, size_t items) {
  OrderedPipeline<Item>(std::move(steps), threads, items).run();
}

}  // namespace starling
