// Watches what a rank's card is doing for others: the operations in progress, whose memory it keeps alive. The host waits for its card only
// in calls that cannot be interrupted, so a separate thread checks the operations at intervals. When one does not end, the thread ends
// NCCL's work on this card and makes the card's memory throw the reason as soon as it is read (CudaDevice::fail).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "backend/cuda/device.h"
#include "comm/communicator.h"
#include "comm/nccl/card_group.h"
#include "comm/nccl/nccl_call.h"

namespace starling::STARLING_CUDA {

// An operation on a card, or one that is still to be put on it.
class CardWait : public Operation {
 public:
  // Explains why it has not ended after that many seconds.
  virtual std::string late(double waited_s) = 0;
  size_t wait_any(std::span<Operation* const> operations, double deadline_s) override;
};

// A collective on a card, or a message of one. Waiting for it makes the card's later work wait, not the host.
class CardOperation : public CardWait {
 public:
  struct About {
    const char* what;
    std::shared_ptr<const CardGroup> group;
    Tensor x;                               // kept until the operation is over
    std::shared_ptr<Storage> scratch = {};  // likewise
  };
  // `ready`: when the card has reached it; `over`: when it has ended.
  CardOperation(std::shared_ptr<CardWatch> watch, About about);
  ~CardOperation() override;
  bool done() override;
  void wait(double deadline_s) override;
  std::string late(double waited_s) override;
  cudaEvent_t ready() const { return ready_; }
  cudaEvent_t over() const { return over_; }

 private:
  friend class CardWatch;
  const std::shared_ptr<CardWatch> watch_;
  const About about_;
  cudaEvent_t ready_ = nullptr, over_ = nullptr;
  // Under the watch's mutex.
  int64_t number_ = 0;
  bool started_ = false, reached_ = false;
  int64_t waited_for_since_ns_ = 0;  // 0: nobody waits for it
  double deadline_s_ = 0;
};

class CardWatch {
 public:
  CardWatch(std::shared_ptr<CudaDevice> device, Communicator& all);
  ~CardWatch();
  CudaDevice& device() const { return *device_; }
  int rank() const { return rank_; }
  // "rank 1 on beta", numbered as on the communicator of all ranks; without an argument, this rank.
  std::string name(int rank) const { return fmt::format("rank {} on {}", rank, hosts_[static_cast<size_t>(rank)]); }
  std::string name() const { return name(rank_); }

  // Places in the counts. A new group continues from the highest count of its ranks, so that older counts are never taken for its own.
  CardPlaces places() const;
  void take(const CardGroup& group, int64_t counted);
  // Call when all operations of the group are over.
  void give_back(const CardGroup& group);

  // Begins the next operation of a group; its first event has been recorded.
  void begin(const std::shared_ptr<CardOperation>& operation);
  // Call when all of the operation is on its stream.
  void started(CardOperation& operation);
  void wait_for(CardOperation& operation, double deadline_s);

  // Hold this while calling NCCL, whose work may be ended at any time.
  std::mutex& nccl() { return nccl_; }
  void add(ncclComm_t comm, std::shared_ptr<const CardGroup> group) { comms_.emplace(comm, std::move(group)); }
  bool open(ncclComm_t comm) const { return comms_.contains(comm); }
  void remove(ncclComm_t comm) { comms_.erase(comm); }
  // Whether NCCL's work has been ended here, so that a thread of NCCL's may still be busy with it.
  bool ended() const { return ended_; }
  // Throws once NCCL's work has been ended, which does not happen while nccl() is held.
  void require_sound() const { device_->require_sound(); }
  void count(int64_t sent, int64_t received, int64_t messages) { sent_ += sent, received_ += received, messages_ += messages; }
  Traffic traffic() const { return {sent_, received_, messages_, 0}; }

  // Ends NCCL's work on this card, all communicators at once; reading its memory throws the error from now on.
  void fail(const std::exception_ptr& error);
  // Waits for the operations in progress. Afterwards nothing is watched, and the communicator of all ranks is no longer used.
  void stop();

 private:
  void main();
  void watch();
  void look();
  friend class CardOperation;
  std::string trouble(const CardOperation& operation, double waited_s) const;
  std::string failure(ncclResult_t state, const CardGroup& group) const;

  const std::shared_ptr<CudaDevice> device_;
  Communicator& all_;
  const int rank_;
  std::vector<std::string> hosts_;
  mutable std::mutex mutex_, nccl_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<CardOperation>> under_way_;
  CardCounts counts_{};
  std::array<std::string, CardCounts{}.size()> purposes_;  // of the groups; empty: no group has the place
  bool stopped_ = false;
  std::map<ncclComm_t, std::shared_ptr<const CardGroup>> comms_;  // under nccl_
  std::atomic<bool> ended_ = false;
  std::atomic<int64_t> sent_ = 0, received_ = 0, messages_ = 0;
  std::thread thread_;
};

}  // namespace starling::STARLING_CUDA
