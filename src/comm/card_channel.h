// Carries tensors from card to card without going through host memory (comm/nccl/). A communicator that is connected to a channel gives it
// the collectives of tensors on cards; everything else stays with the world.
#pragma once

#include "comm/communicator.h"

namespace starling {

class CardChannel {
 public:
  virtual ~CardChannel() = default;
  // Whether x lies on this rank's card. In one operation, either all ranks' tensors do or none.
  virtual bool carries(const Tensor& x) const = 0;
  // As Communicator::run, with the communicator's deadline. Waiting for the Pending makes later work of the card wait, not the host.
  virtual Pending run(Schedule schedule, const Tensor& x, const char* what, double deadline_s) = 0;
  // Starts the library's own version of a collective; returns false if it has none.
  virtual bool library(Collective kind, const Tensor& x, int root, double deadline_s, Pending& pending) = 0;
  // From now on, messages to the next and the previous rank go through the channel. Blocking, collective.
  virtual void link_neighbours(Communicator& comm) = 0;
  // As Communicator::send and receive; false if there is no link to that rank.
  virtual bool send(const Tensor& x, int to, Tag tag, double deadline_s, Pending& pending) = 0;
  virtual bool receive(const Tensor& x, int from, Tag tag, double deadline_s, Pending& pending) = 0;
  // What has been sent through this channel and the channels split off from it.
  virtual Traffic traffic() const = 0;
  // Returns a channel for a part of the ranks, whose communicator is given. Collective among that part.
  virtual std::shared_ptr<CardChannel> split_off(Communicator& part, const char* purpose) = 0;
};

}  // namespace starling
