// One rank's view of a group of ranks. Everything is non-blocking: a call returns a Pending, whose wait has a deadline and names the rank
// that is late. All ranks of the group call collectives in the same order. Tensors are flat and contiguous and must stay untouched until
// the operation is done; a Pending keeps their memory alive.
//
// A tensor without elements (meta_memory) stands for one of its size; only the simulator and an imagined world take these. Tensors
// on cards go from card to card if the cards are connected (card_channel.h). Otherwise a tensor that lies outside host memory travels as a
// copy, which is made when the operation begins and put back by the Pending.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/algorithms/algorithms.h"
#include "comm/schedule.h"
#include "config/words.h"
#include "tensor/tensor.h"

namespace starling {

// What a world implements behind a Pending. wait throws PeerError when the deadline passes or a peer has failed.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual bool done() = 0;
  virtual void wait(double deadline_s) = 0;
  // Waits until one of these operations, which belong to one world and rank and include this one, has ended; returns the position of the
  // one that ended first. Throws as wait does.
  virtual size_t wait_any(std::span<Operation* const> operations, double deadline_s) = 0;
};

// A handle on an operation in progress; copies share it.
class Pending {
 public:
  Pending() = default;  // no operation: done
  Pending(std::shared_ptr<Operation> operation, double deadline_s) : operation_(std::move(operation)), deadline_s_(deadline_s) {}
  bool done() const;
  // Waits until the operation has ended here. Throws PeerError after the communicator's deadline, or the given one (seconds).
  void wait() const { wait(deadline_s_); }
  void wait(double deadline_s) const;
  // Copies `from` to `to` once the operation has ended and somebody has waited for it or seen that it is done.
  void then_copy(const Tensor& from, const Tensor& to);

 private:
  friend size_t wait_any(std::span<const Pending>, double);
  friend size_t wait_any(std::span<const Pending>);
  struct Arrival {
    Tensor from, to;  // empty handles once copied
    void copy();
  };
  std::shared_ptr<Operation> operation_;
  std::shared_ptr<Arrival> arrival_;  // shared by copies, so that it is copied once
  double deadline_s_ = 0;
};

// Waits until one of the operations, all of one world, has ended, and returns its position; if several have, that of the first to end. So a
// rank that serves many others serves them in the order in which they arrive. An empty Pending counts as having ended before all others.
// Throws PeerError, naming the ranks it waits for, after the given deadline or else the shortest one of the operations (seconds).
size_t wait_any(std::span<const Pending> pending, double deadline_s);
size_t wait_any(std::span<const Pending> pending);

enum class Algorithm : uint8_t {
  automatic,  // tree up to 64 KiB, ring above
  ring,
  tree,
  halving_doubling,
  library  // MPI's own collectives, and NCCL's on cards; else automatic
};
constexpr auto words(Algorithm) { return std::array{"auto", "ring", "tree", "halving-doubling", "library"}; }

// What one rank has sent and received, headers not counted.
struct Traffic {
  int64_t bytes_sent = 0, bytes_received = 0, messages_sent = 0;
  int64_t waited_ns = 0;  // in Pending::wait
};

using Tag = int;  // of point-to-point messages: 0 to 32767, the same on both sides

enum class Collective : uint8_t { all_reduce_sum, all_reduce_maximum, reduce_scatter, all_gather, broadcast, barrier };

// Operations of a rank's card in one group of ranks, counted since the group was connected: those that the host has put on its streams,
// those that the card has reached, and those that it has completed.
struct CardProgress {
  int64_t enqueued = 0, reached = 0, completed = 0;
};
// By group, which has the same index on all of its ranks.
using CardCounts = std::array<CardProgress, 12>;
// What is known about another rank from its heartbeats.
struct RankNews {
  CardCounts card;
  std::string phase;
  int64_t step = 0;
  double age_s = 0;  // since its last heartbeat
};

class CardChannel;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host(int rank) const = 0;
  Traffic traffic() const;

  // Messages between two ranks with one tag arrive in the order in which they were sent. Both sides know the size and give tensors in the
  // same kind of memory: both the host's, or both a card's.
  Pending send(const Tensor& x, int to, Tag tag);
  Pending receive(const Tensor& x, int from, Tag tag);

  // Executes this rank's schedule on x. All ranks of the group call it in the same order with schedules of one algorithm. `what` appears in
  // messages and traces and must be a literal.
  Pending run(Schedule schedule, const Tensor& x, const char* what);

  // Returns a communicator of the ranks that have the same color, in the order of their ranks here. Every rank gives the colors of all.
  // purpose, a literal, says in messages what they exchange. Blocking, collective.
  using Colors = std::function<int(int rank)>;
  std::unique_ptr<Communicator> split(const Colors& color, const char* purpose = "a part of the ranks");

  // Records what this rank is doing, for messages about late ranks; step 0 = unchanged. Cheap.
  virtual void note(const char* phase, int64_t step) = 0;
  // The same for its card. May be called from any thread.
  virtual void note(const CardCounts&) {}
  // What is known about every rank, by rank; empty in worlds without heartbeats. May be called from any thread.
  virtual std::vector<RankNews> news() const { return {}; }

  // From now on, tensors that the channel carries go through it, here and in communicators split off from this one; null: none do.
  void connect(std::shared_ptr<CardChannel> cards) { cards_ = std::move(cards); }
  // Makes messages between neighbouring ranks go through it, too. Blocking, collective.
  void link_neighbours();

  // x becomes the sum (or maximum) over the ranks.
  Pending all_reduce(const Tensor& x, Reduce reduce = Reduce::sum);
  // Sums f32 tensors with bf16 on the wire; other types are reduced as they are.
  Pending all_reduce_bf16(const Tensor& x);
  // part(x.count(), rank, size) of x becomes the sum over the ranks; the rest of x is undefined afterwards.
  Pending reduce_scatter(const Tensor& x);
  // Each rank gives part(x.count(), rank, size) of x and gets the whole.
  Pending all_gather(const Tensor& x);
  // Each rank gives elements [offsets[rank], offsets[rank+1]) of x and gets the whole.
  Pending all_gather_varying(const Tensor& x, std::span<const int64_t> offsets);
  Pending broadcast(const Tensor& x, int root);
  Pending barrier();

  void set_algorithm(Algorithm algorithm) { algorithm_ = algorithm; }
  Algorithm algorithm() const { return algorithm_; }
  void set_deadline(double seconds) { deadline_s_ = seconds; }
  double deadline() const { return deadline_s_; }

 protected:
  // What a world implements: send, receive and run for tensors that lie in host memory or have no elements.
  virtual Pending start_send(const Tensor& x, int to, Tag tag) = 0;
  virtual Pending start_receive(const Tensor& x, int from, Tag tag) = 0;
  virtual Pending start(Schedule schedule, const Tensor& x, const char* what) = 0;
  virtual std::unique_ptr<Communicator> split_off(const Colors& color) = 0;
  virtual Traffic own_traffic() const = 0;  // of operations that the world carries
  // Starts a world's own version of a collective; returns false if it has none. Sizes and types are as in the public calls.
  virtual bool library_collective(Collective, const Tensor&, int /*root*/, Pending&) { return false; }
  // start() with a schedule that is made on demand, for any rank: a world that only times collectives need not make every one. `variant`
  // distinguishes schedules that have the same `what` and x (the root of a broadcast).
  using ScheduleMaker = std::function<Schedule(int rank)>;
  virtual Pending run_made(const ScheduleMaker& make, int /*variant*/, const Tensor& x, const char* what) {
    return start(make(rank()), x, what);
  }

 private:
  // Runs the world's own version if that is asked for and exists, else the schedule.
  Pending collective(Collective kind, int root, const Tensor& x, const ScheduleMaker& make, const char* what);
  CollectiveShape shape(const Tensor& x) const { return {rank(), size(), x.count(), x.dtype()}; }
  bool carried(const Tensor& x) const;
  std::shared_ptr<CardChannel> cards_;
  Algorithm algorithm_ = Algorithm::automatic;
  double deadline_s_ = 300;
};

// Deadline, in seconds, of waits that may last as long as another rank's own work: reading a corpus, validating, writing a checkpoint.
constexpr double kNoDeadline = 30 * 24 * 3600.0;

// Exchange small texts that all ranks need. Blocking.
std::string broadcast_text(Communicator&, const std::string& text, int root = 0);
std::vector<std::string> gather_texts(Communicator&, const std::string& text);  // everybody's, by rank, on every rank

}  // namespace starling
