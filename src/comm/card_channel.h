// Carries tensors that lie in the memories of cards from card to card, past the hosts: comm/nccl/. A communicator that is connected to one
// gives it the collectives of such tensors; everything else stays the world's.
#pragma once

#include "comm/communicator.h"

namespace starling {

class CardChannel {
 public:
  virtual ~CardChannel() = default;
  // Whether x lies on this rank's card. All ranks' tensors of an operation do, or none.
  virtual bool carries(const Tensor& x) const = 0;
  // As Communicator::run, with the communicator's deadline. Waiting for the Pending makes the card's later work wait, not the host.
  virtual Pending run(Schedule schedule, const Tensor& x, const char* what, double deadline_s) = 0;
  // The library's own version of a collective, started; false when it has none.
  virtual bool library(Collective kind, const Tensor& x, int root, double deadline_s, Pending& pending) = 0;
  // From now on messages to the ranks before and behind this one go through the channel. Blocking, collective.
  virtual void link_neighbours(Communicator& comm) = 0;
  // As Communicator::send and receive; false: there is no link to that rank.
  virtual bool send(const Tensor& x, int to, Tag tag, double deadline_s, Pending& pending) = 0;
  virtual bool receive(const Tensor& x, int from, Tag tag, double deadline_s, Pending& pending) = 0;
  // What has been sent through this channel and those that were split off.
  virtual Traffic traffic() const = 0;
  // For a part of the ranks, whose communicator is given. Collective among the part.
  virtual std::shared_ptr<CardChannel> split_off(Communicator& part, const char* purpose) = 0;
};

}  // namespace starling
