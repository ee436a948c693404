// A group of cards, connected by NCCL. A schedule is put on a stream of this group's own: each round is one group of NCCL's sends and
// receives, arithmetic is kernels between them. So sums have the bits that they have in every other world, whatever the links are.
#pragma once

#include "comm/card_channel.h"
#include "comm/nccl/card_watch.h"

namespace starling::STARLING_CUDA {

class NcclChannel final : public CardChannel {
 public:
  // Among the ranks of a communicator, each with a card of its own. Blocking, collective.
  NcclChannel(std::shared_ptr<CardWatch> watch, Communicator& comm);
  ~NcclChannel() override;
  bool carries(const Tensor& x) const override { return &x.memory() == &watch_->device().memory(); }
  Pending run(Schedule schedule, const Tensor& x, const char* what, double deadline_s) override;
  bool library(Collective kind, const Tensor& x, int root, double deadline_s, Pending& pending) override;
  Traffic traffic() const override { return watch_->traffic(); }
  std::shared_ptr<CardChannel> split_off(Communicator& part) override { return std::make_shared<NcclChannel>(watch_, part); }

 private:
  void connect(Communicator& comm);
  void close();
  std::shared_ptr<CardOperation> begin(const char* what, const Tensor& x, int64_t scratch_bytes, double deadline_s);
  Pending started(const std::shared_ptr<CardOperation>& operation, double deadline_s);
  void exchange(const Schedule::Round& round, std::byte* data, std::byte* scratch);
  void calculate(const std::vector<Schedule::Local>& steps, DType type, std::byte* data, std::byte* scratch) const;
  // One group of NCCL's calls, from its start until all of it is on the stream.
  template <class Calls>
  void group(const Calls& calls);
  void count(const Schedule& schedule);

  const std::shared_ptr<CardWatch> watch_;
  const int rank_, size_;
  Members members_;
  ncclComm_t nccl_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<Storage> scratch_;  // of all operations, which have it one after the other
};

}  // namespace starling::STARLING_CUDA
