// A communicator of NCCL and the stream on which its work is.
#pragma once

#include <chrono>
#include <exception>
#include <set>
#include <string>

#include "comm/nccl/card_watch.h"

namespace starling::STARLING_CUDA {

// Bytes that name a group of cards which is about to be connected; one of its ranks makes them and tells the others.
std::string new_name();

class Wire {
 public:
  // Every rank of the group calls it at about the same time. PeerError when they are not connected after so many seconds.
  Wire(std::shared_ptr<CardWatch> watch, std::shared_ptr<const CardGroup> group, const std::string& name, double deadline_s);
  // When all ranks' are through with it; the order in which wires end must be the same on all ranks. While an exception is under way, the
  // work of all wires of this card is ended first: no rank waits here for one that waits elsewhere.
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  cudaStream_t stream() const { return stream_; }
  // Connects this rank with those that it will send to and receive from, which are called the same. NCCL waits for the other host in the
  // first message of a pair, so that is sent here, where all are together: later calls do not wait. Ranks of the group.
  void connect(const std::set<int>& to, const std::set<int>& from, double deadline_s);
  // One group of calls, each of which is given the communicator; returns when all of it is on the stream.
  template <class Calls>
  void group(const Calls& calls) {
    try {
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
    } catch (const NcclError& e) {
      fail(e.what());
    }
  }

  // The next operation on this wire: what the caller puts on the stream then waits for what the card has been given so far. It is watched
  // from now on, since a call may wait for the other hosts: that of a pair that is not connected yet.
  std::shared_ptr<CardOperation> begin(const char* what, const Tensor& x, std::shared_ptr<Storage> scratch, double deadline_s);
  // All of it is on the stream.
  void end(CardOperation& operation);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // The result of a call when nothing is in progress any more, or at that time; a time of zero is never.
  ncclResult_t settled(ncclResult_t result, Time until);
  [[noreturn]] void fail(const std::string& why) const;
  void finish();
  void close(bool failed);
  const std::shared_ptr<CardWatch> watch_;
  const std::shared_ptr<const CardGroup> group_;
  const int exceptions_ = std::uncaught_exceptions();  // then under way
  ncclComm_t nccl_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace starling::STARLING_CUDA
