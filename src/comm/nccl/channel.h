// A group of cards, connected by NCCL. Each channel puts schedules on a stream of its own: each round is one group of NCCL sends and
// receives, with kernels for the arithmetic between them. So sums have the same bits as in every other world, whatever the links are.
#pragma once

#include "comm/card_channel.h"
#include "comm/nccl/link.h"
#include "comm/nccl/wire.h"

namespace starling::STARLING_CUDA {

class NcclChannel final : public CardChannel {
 public:
  // Connects the ranks of a communicator, each with its own card; purpose appears in messages. Blocking, collective.
  NcclChannel(std::shared_ptr<CardWatch> watch, Communicator& comm, const char* purpose);
  ~NcclChannel() override;
  bool carries(const Tensor& x) const override { return &x.memory() == &watch_->device().memory(); }
  Pending run(Schedule schedule, const Tensor& x, const char* what, double deadline_s) override;
  bool library(Collective kind, const Tensor& x, int root, double deadline_s, Pending& pending) override;
  void link_neighbours(Communicator& comm) override;
  bool send(const Tensor& x, int to, Tag tag, double deadline_s, Pending& pending) override;
  bool receive(const Tensor& x, int from, Tag tag, double deadline_s, Pending& pending) override;
  Traffic traffic() const override { return watch_->traffic(); }
  std::shared_ptr<CardChannel> split_off(Communicator& part, const char* purpose) override {
    return std::make_shared<NcclChannel>(watch_, part, purpose);
  }

 private:
  void exchange(const Schedule::Round& round, std::byte* data, std::byte* scratch);
  void calculate(const std::vector<Schedule::Local>& steps, DType type, std::byte* data, std::byte* scratch) const;
  void count(const Schedule& schedule);

  const std::shared_ptr<CardWatch> watch_;
  const int rank_, size_;
  std::unique_ptr<Wire> wire_;
  std::shared_ptr<Storage> scratch_;          // shared by all operations, which use it one after another
  std::vector<std::unique_ptr<Link>> links_;  // to and from the neighbours, in the order of the ranks
};

}  // namespace starling::STARLING_CUDA
