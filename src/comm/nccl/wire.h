// An NCCL communicator and the stream that its work is on.
#pragma once

#include <chrono>
#include <exception>
#include <set>
#include <string>

#include "comm/nccl/card_watch.h"

namespace starling::STARLING_CUDA {

// Makes the bytes that name a group of cards to be connected; one of its ranks calls this and sends them to the others.
std::string new_name();

class Wire {
 public:
  // All ranks of the group call it at about the same time. Throws PeerError if they are not connected after that many seconds.
  Wire(std::shared_ptr<CardWatch> watch, std::shared_ptr<const CardGroup> group, const std::string& name, double deadline_s);
  // Returns when all ranks' wires are through; wires must end in the same order on all ranks. If an exception is in flight, it first ends
  // the work of all wires of this card, so that no rank waits here for one that waits elsewhere.
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  cudaStream_t stream() const { return stream_; }
  // Connects this rank with the ranks of the group that it will send to and receive from, which make the matching call. NCCL waits for the
  // other host at the first message of a pair, so that message is sent here, where all ranks are together; later calls do not wait.
  void connect(const std::set<int>& to, const std::set<int>& from, double deadline_s);
  // Runs one group of NCCL calls, which get the communicator; returns when all of it is on the stream.
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

  // Begins the next operation on this wire: what the caller then puts on the stream waits for all earlier work of the card. It is watched
  // from now on, since a call may wait for other hosts if its pair is not connected yet.
  std::shared_ptr<CardOperation> begin(const char* what, const Tensor& x, std::shared_ptr<Storage> scratch, double deadline_s);
  // Call when all of it is on the stream.
  void end(CardOperation& operation);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // Returns the result of a call once nothing is in progress any more, or at that time; a time of zero means never.
  ncclResult_t settled(ncclResult_t result, Time until);
  [[noreturn]] void fail(const std::string& why) const;
  void finish();
  void close(bool failed);
  const std::shared_ptr<CardWatch> watch_;
  const std::shared_ptr<const CardGroup> group_;
  const int exceptions_ = std::uncaught_exceptions();  // in flight at construction
  ncclComm_t nccl_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace starling::STARLING_CUDA
