// A group of shards that exchanges over a communicator.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "tensor/shard_group.h"

namespace starling {

class ShardCommunicator : public ShardGroup {
 public:
  explicit ShardCommunicator(Communicator& comm) : comm_(comm) {}
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  Communicator& comm() const { return comm_; }
  void sum(const Tensor& x) override { exchange(x, Reduce::sum); }
  void maximum(const Tensor& x) override { exchange(x, Reduce::maximum); }

  // Called before each exchange: a clock may want to know what was computed since the previous one.
  std::function<void()> before_exchange = [] {};
  // Bytes sent so far per worker, on average: any all-reduce sends 2 (T - 1) / T of each tensor.
  double bytes_sent() const { return bytes_sent_; }

 private:
  void exchange(const Tensor& x, Reduce reduce) {
    before_exchange();
    bytes_sent_ += 2.0 * static_cast<double>(x.bytes()) * (size() - 1) / size();
    comm_.all_reduce(x, reduce).wait();
  }

  Communicator& comm_;
  double bytes_sent_ = 0;
};

}  // namespace starling
