// Messages of tensors from one card to another, in one direction. NCCL has no tags and delivers messages in the order in which they were
// sent. Therefore the sender's host tells the receiver's host the tag and size of each message, in order, and the receiver asks its card
// for messages in this order: into the tensor that waits for the tag or, if there is none yet, into memory of its own.
#pragma once

#include <deque>
#include <map>

#include "comm/nccl/wire.h"

namespace starling::STARLING_CUDA {

class Link {
 public:
  // Links two ranks of a communicator, both of which call it. Blocking.
  Link(std::shared_ptr<CardWatch> watch, Communicator& comm, int from, int to, std::shared_ptr<const CardGroup> group);
  int from() const { return from_; }
  int to() const { return to_; }
  Pending send(const Tensor& x, Tag tag, double deadline_s);
  Pending receive(const Tensor& x, Tag tag, double deadline_s);

 private:
  class Receipt;
  struct Notice {
    Tensor words;  // i32: the tag, then the bytes in two parts
    Pending pending;
  };
  struct Early {
    std::shared_ptr<CardOperation> operation;
    Tensor x;
  };
  void expect_notice();
  // Takes the next notice; returns false if it has not arrived and the caller does not want to wait.
  bool take_notice(bool patiently, double deadline_s);
  std::shared_ptr<CardOperation> fetch(const Tensor& x, double deadline_s);

  const std::shared_ptr<CardWatch> watch_;
  Communicator& comm_;
  const int from_, to_;
  std::unique_ptr<Wire> wire_;
  std::deque<Notice> notices_;                 // sent but not yet taken, or expected: never more than messages to come
  std::deque<std::shared_ptr<Receipt>> open_;  // receives whose message the card has not been asked for
  std::map<Tag, std::deque<Early>> early_;     // messages that no receive has asked for
};

}  // namespace starling::STARLING_CUDA
