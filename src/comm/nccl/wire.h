// A communicator of NCCL and the stream on which its work is.
#pragma once

#include <chrono>
#include <string>

#include "comm/nccl/card_watch.h"

namespace starling::STARLING_CUDA {

// Bytes that name a group of cards which is about to be connected; one of its ranks makes them and tells the others.
std::string new_name();

class Wire {
 public:
  // Every rank of the group calls it at about the same time. PeerError when they are not connected after so many seconds.
  Wire(std::shared_ptr<CardWatch> watch, int rank, int size, const std::string& name, double deadline_s);
  // When all ranks' are through with it; the order in which wires end must be the same on all ranks.
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  cudaStream_t stream() const { return stream_; }
  // One group of calls, each of which is given the communicator; returns when all of it is on the stream.
  template <class Calls>
  void group(const Calls& calls) {
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(watch_->nccl());
      watch_->require_sound();
      NCCL_CALL(GroupStart);
      try {
        calls(nccl_);
      } catch (...) {
        ncclGroupEnd();  // or all that this thread calls later would only be remembered
        throw;
      }
      result = ncclGroupEnd();
    }
    nccl_check(settled(result, {}), "ncclGroupEnd");
  }

  // The next operation on this wire: what the caller puts on the stream then waits for what the card has been given so far. NCCL waits for
  // the other side in the first calls of a pair, so the operation is watched from now on.
  std::shared_ptr<CardOperation> begin(CardOperation::About about, double deadline_s);
  // All of it is on the stream.
  void end(CardOperation& operation);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // The result of a call when nothing is in progress any more, or at that time; a time of zero is never.
  ncclResult_t settled(ncclResult_t result, Time until);
  void close(bool failed);
  const std::shared_ptr<CardWatch> watch_;
  ncclComm_t nccl_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace starling::STARLING_CUDA
