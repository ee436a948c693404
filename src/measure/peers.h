// The ranks that measure at the same time, as they will compute: processes of an MPI run, or threads of this process.
#pragma once

#include <barrier>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace starling {

class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Waits for the others.
  virtual void together() = 0;
  // Returns the numbers of all ranks, one rank's after the other's. All ranks pass equally many.
  virtual std::vector<double> gather(std::span<const double> own) = 0;
  // Returns the largest of all ranks' numbers.
  double largest(double own);
};

class RankPeers : public Peers {
 public:
  explicit RankPeers(Communicator& comm) : comm_(comm) {}
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  void together() override { comm_.barrier().wait(kNoDeadline); }
  std::vector<double> gather(std::span<const double> own) override;

 private:
  Communicator& comm_;
};

// Threads that each have a ThreadPeers of one ThreadGroup. One that ends early must leave().
struct ThreadGroup {
  explicit ThreadGroup(int size) : size(size), barrier(size), numbers(static_cast<size_t>(size)) {}
  const int size;
  std::barrier<> barrier;
  std::vector<std::vector<double>> numbers;  // of the gather under way, by rank; of a rank that left, what it gave last
};
class ThreadPeers : public Peers {
 public:
  ThreadPeers(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size; }
  void together() override { group_.barrier.arrive_and_wait(); }
  std::vector<double> gather(std::span<const double> own) override;
  void leave() { group_.barrier.arrive_and_drop(); }

 private:
  ThreadGroup& group_;
  const int rank_;
};

}  // namespace starling
