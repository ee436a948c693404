// One rank's view of a group of ranks. Everything is non-blocking: a call returns a Pending, whose wait has a deadline and names the rank
// that is late. Collectives are called by all ranks of the group in the same order. Tensors are flat and contiguous and must stay
// untouched until the operation is done; a Pending keeps their memory alive.
//
// A tensor without elements (meta_memory) stands for one of its size: only the simulator moves such, to time what would not fit. Tensors on
// cards go from card to card where the cards are connected (card_channel.h). Otherwise, of a tensor that lies in another memory than the
// host's, a copy travels: it is made when the operation begins, and put back by the Pending.
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
  // Until one of these, of one world and rank and this among them, has ended: the position of the one that ended first. Throws as wait.
  virtual size_t wait_any(std::span<Operation* const> operations, double deadline_s) = 0;
};

class Pending {
 public:
  Pending() = default;  // of nothing: done
  Pending(std::shared_ptr<Operation> operation, double deadline_s) : operation_(std::move(operation)), deadline_s_(deadline_s) {}
  bool done() const;
  // Until the operation has ended here; PeerError after the communicator's deadline, or the given one (seconds).
  void wait() const { wait(deadline_s_); }
  void wait(double deadline_s) const;
  // `to` gets the elements of `from` when the operation has ended and somebody has waited for it, or been told that it is done.
  void then_copy(const Tensor& from, const Tensor& to);

 private:
  friend size_t wait_any(std::span<const Pending>, double);
  friend size_t wait_any(std::span<const Pending>);
  struct Arrival {
    Tensor from, to;  // empty handles once copied
    void copy();
  };
  std::shared_ptr<Operation> operation_;
  std::shared_ptr<Arrival> arrival_;  // shared by copies: it happens once
  double deadline_s_ = 0;
};

// Waits until one of the operations, all of one world, has ended, and returns its position. If several have, it is the one that ended
// first: whoever serves many ranks serves them in the order of their coming. An operation of nothing ended before all others.
// PeerError naming the ranks that are waited for after the given deadline, or the shortest one of the operations (seconds).
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

// Operations of a rank's card in one group of ranks, counted since the group was connected: what its host has put on its streams, those
// whose turn has come, and those that are over.
struct CardProgress {
  int64_t enqueued = 0, reached = 0, completed = 0;
};
// By group: all of its ranks have it at the same place.
using CardCounts = std::array<CardProgress, 12>;
// What is known of another rank by its heartbeats.
struct RankNews {
  CardCounts card;
  std::string phase;
  int64_t step = 0;
  double age_s = 0;  // since it was last heard of
};

class CardChannel;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host(int rank) const = 0;
  Traffic traffic() const;

  // Messages between two ranks with one tag arrive in the order they were sent. Both sides know the size, and give tensors of the same
  // memory: both the host's, or both a card's.
  Pending send(const Tensor& x, int to, Tag tag);
  Pending receive(const Tensor& x, int from, Tag tag);

  // Executes this rank's schedule on x; all ranks of the group call it in the same order with schedules of one algorithm. `what` is for
  // messages and traces, and must be a literal.
  Pending run(Schedule schedule, const Tensor& x, const char* what);

  // The ranks that give the same color, in the order of their ranks here; what they exchange, a literal, is for messages. Blocking,
  // collective.
  std::unique_ptr<Communicator> split(int color, const char* purpose = "a part of the ranks");

  // Tells what this rank is doing, for the messages about late ranks; step 0 = still the same. Cheap.
  virtual void note(const char* phase, int64_t step) = 0;
  // The same of its card; from any thread.
  virtual void note(const CardCounts&) {}
  // What is known of everybody, by rank; empty in worlds without heartbeats. From any thread.
  virtual std::vector<RankNews> news() const { return {}; }

  // Tensors that the channel carries go through it from now on, here and in parts that are split off; null: none do.
  void connect(std::shared_ptr<CardChannel> cards) { cards_ = std::move(cards); }
  // Lets messages between neighbouring ranks go through it, too. Blocking, collective.
  void link_neighbours();

  // x becomes the sum (or maximum) over the ranks.
  Pending all_reduce(const Tensor& x, Reduce reduce = Reduce::sum);
  // The sum of f32 tensors with bf16 on the wire; other types are reduced as they are.
  Pending all_reduce_bf16(const Tensor& x);
  // part(x.count(), rank, size) of x becomes the sum over the ranks; the rest of x is undefined then.
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
  // What a world implements, as send, receive and run, for tensors that are the host's or have no elements.
  virtual Pending start_send(const Tensor& x, int to, Tag tag) = 0;
  virtual Pending start_receive(const Tensor& x, int from, Tag tag) = 0;
  virtual Pending start(Schedule schedule, const Tensor& x, const char* what) = 0;
  virtual std::unique_ptr<Communicator> split_off(int color) = 0;
  virtual Traffic own_traffic() const = 0;  // of the world's operations
  // A world's own version of a collective, started; false when it has none. Sizes and types are as in the public calls.
  virtual bool library_collective(Collective, const Tensor&, int /*root*/, Pending&) { return false; }
  // start() of a schedule that is made when it is needed, for any rank: a world that only times collectives need not make every one.
  // `variant` tells schedules apart that are equal in `what` and x (the root of a broadcast).
  using ScheduleMaker = std::function<Schedule(int rank)>;
  virtual Pending run_made(const ScheduleMaker& make, int /*variant*/, const Tensor& x, const char* what) {
    return start(make(rank()), x, what);
  }

 private:
  // The world's own version, where that is asked for and there is one, or the schedule.
  Pending collective(Collective kind, int root, const Tensor& x, const ScheduleMaker& make, const char* what);
  CollectiveShape shape(const Tensor& x) const { return {rank(), size(), x.count(), x.dtype()}; }
  bool carried(const Tensor& x) const;
  std::shared_ptr<CardChannel> cards_;
  Algorithm algorithm_ = Algorithm::automatic;
  double deadline_s_ = 300;
};

// Deadline, in seconds, of waits that take as long as a rank's own work does: reading a corpus, validating, writing a checkpoint.
constexpr double kNoDeadline = 30 * 24 * 3600.0;

// Helpers for small things that all ranks need. Blocking.
std::string broadcast_text(Communicator&, const std::string& text, int root = 0);
std::vector<std::string> gather_texts(Communicator&, const std::string& text);  // everybody's, by rank, on every rank

}  // namespace starling
