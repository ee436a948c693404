// A group of threads that hold the shards of one replica: what workers of a cluster are to each other, in one process. Each has a backend
// of its own; what they exchange goes through the host's memory, wherever tensors lie. Counts what a worker sends.
#pragma once

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "autograd/shards.h"
#include "tests/ops/parity.h"

namespace starling {

using Values = std::vector<double>;

// Columns, heads or tokens [begin, end): those of a worker among n, which need not divide n.
struct ShardPart {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
inline ShardPart part_of(int64_t n, int64_t rank, int64_t size) { return {n * rank / size, n * (rank + 1) / size}; }

class ShardThreads {
 public:
  explicit ShardThreads(int size) : slots_(static_cast<size_t>(size)) {}

  struct Traffic {
    int64_t messages = 0, bytes = 0;  // of one worker
  };

  // Runs `body` for each worker at once, and throws what one of them has thrown.
  void run(const std::function<void(ShardGroup&)>& body) {
    std::vector<std::thread> threads;
    std::exception_ptr failure;
    for (int rank = 0; rank < static_cast<int>(slots_.size()); ++rank)
      threads.emplace_back([&, rank] {
        try {
          Member member(*this, rank);
          body(member);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!failed_) failure = std::current_exception();
          failed_ = true;
          changed_.notify_all();
        }
      });
    for (std::thread& t : threads) t.join();
    if (failure) std::rethrow_exception(failure);
  }
  Traffic traffic() const { return traffic_; }

 private:
  enum class Op { sum, maximum };

  class Member : public ShardGroup {
   public:
    Member(ShardThreads& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(all_.slots_.size()); }
    void sum(const Tensor& x) override { x.from_doubles(all_.exchange(rank_, Op::sum, x)); }
    void maximum(const Tensor& x) override { x.from_doubles(all_.exchange(rank_, Op::maximum, x)); }

   private:
    ShardThreads& all_;
    int rank_;
  };

  struct Slot {
    Op op;
    DType type;
    std::vector<double> numbers;
  };

  // The last to come computes for all, in the order of their ranks.
  std::vector<double> exchange(int rank, Op op, const Tensor& x) {
    Slot own{op, x.dtype(), x.to_doubles()};
    std::unique_lock lock(mutex_);
    if (rank == 0) ++traffic_.messages, traffic_.bytes += x.bytes();
    slots_[static_cast<size_t>(rank)] = std::move(own);
    if (++arrived_ == slots_.size()) {
      result_ = combined();
      arrived_ = 0, ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&, round = round_] { return round_ != round || failed_; });
    }
    CHECK(!failed_, "another worker of the group has failed");
    return result_;
  }
  std::vector<double> combined() const {
    std::vector<double> result = slots_[0].numbers;
    for (size_t r = 1; r < slots_.size(); ++r) {
      const Slot& slot = slots_[r];
      CHECK(slot.op == slots_[0].op && slot.type == slots_[0].type && slot.numbers.size() == result.size(),
            "worker {} of a group exchanges {} numbers, worker 0 {}, or others", r, slot.numbers.size(), result.size());
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = slot.op == Op::sum ? result[i] + slot.numbers[i] : std::max(result[i], slot.numbers[i]);
    }
    return result;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::vector<double> result_;
  size_t arrived_ = 0;
  int64_t round_ = 0;
  bool failed_ = false;
  Traffic traffic_;
};

}  // namespace starling
