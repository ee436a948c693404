// The simulator's core. Ranks are threads, but only the one that holds the baton talks to the rest. A rank that gives the baton away
// carries out what the network does until the next rank's turn comes, and hands it over. Ranks compute without the baton, in real time, and
// get it back at the virtual time at which their model says they are done. All state is under one mutex.
#pragma once

#include <semaphore.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/world.h"
#include "sim/collective_timing.h"
#include "sim/simulate.h"
#include "sim/trace.h"

namespace starling::sim {

class Engine;
struct Group;

// Thrown into a rank that the scenario crashes. It is not a std::exception, so that no error handler catches it.
struct CrashSignal {};

// Something that a rank can wait for.
class SimOperation : public Operation, public std::enable_shared_from_this<SimOperation> {
 public:
  SimOperation(Engine& engine, int rank) : engine(engine), rank(rank) {}
  bool done() override;
  void wait(double deadline_s) override;
  size_t wait_any(std::span<Operation* const> operations, double deadline_s) override;
  virtual std::string name() const = 0;  // "all-reduce (ring)", "message from rank 1 (tag 5)"
  virtual std::string late() const = 0;  // "rank 2 (node1) has not started it: it is in 'validation' at update 120"
  virtual void message_ended() {}        // one of its messages has just been sent or received
  virtual void arithmetic_ended() {}
  virtual void completed() {}                      // the time given to complete_later() has come
  virtual bool needs(int) const { return false; }  // this other rank, to end
  Engine& engine;
  const int rank;  // in the whole run
  bool complete = false;
  uint64_t ended = 0;               // the number of operations that had ended by then; 0: not ended yet
  double silence_s = 1e9;           // a rank that it needs may be lost for so long, as its communicator's deadline says
  SimOperation* watcher = nullptr;  // waits for any of several operations, including this one
};

struct Message {
  int from = 0, to = 0;
  int64_t bytes = 0;
  std::shared_ptr<SimOperation> sender, receiver;  // set when posted
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::unique_ptr<std::byte[]> copy;  // of an eager message that arrived before its receive was posted
  Time ready = -1;                    // when it has left the sender's software; -1 = not posted
  Time tx_began = 0, tx_ended = 0;
  bool eager = false, arrived = false;
  const char* label = nullptr;  // in the trace; null for messages of collectives
  int64_t number = 0;           // among those of its sender, from 1
  int tries = 0;                // that were lost
  bool doubled = false;
  Message* next = nullptr;  // the next one in its channel or in the free list
};

// A POSIX semaphore: std::binary_semaphore spins before it sleeps, which is too costly with hundreds of waiting threads.
class Semaphore {
 public:
  Semaphore() { sem_init(&semaphore_, 0, 0); }
  ~Semaphore() { sem_destroy(&semaphore_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  void post() { sem_post(&semaphore_); }
  void wait() {
    while (sem_wait(&semaphore_) != 0) {
    }
  }

 private:
  sem_t semaphore_;
};

struct Rank {
  enum State : uint8_t { ready, running, computing, waiting, finished };
  int id = 0, node = 0;
  State state = ready;
  Time now = 0;            // may be ahead of the engine's in timing-only runs, between two communicator calls
  Time software_free = 0;  // when its communication thread is free
  bool body_ended = false, in_piece = false, crashed = false;
  Time crashed_at = 0;
  Time piece = 0, piece_began = 0;
  Work work;  // of the piece
  uint32_t pieces = 0;
  double stolen_ns = 0;                   // by its communication thread, to be added to its next piece
  bool shares = false;                    // computes a piece whose speed follows how many ranks of its node compute
  double work_left = 0, share_speed = 1;  // of that piece at work_at, in ns at speed 1; since then
  Time work_at = 0;
  uint64_t wake_number = 0;                  // of the event that is its next turn; earlier ones are void
  std::deque<std::pair<Time, Time>> passes;  // forward and backward ones that have not ended, where exchanges slow them
  Semaphore baton;                           // posted when it is this rank's turn, or time to end
  SimOperation* waits_for = nullptr;
  Time wait_began = 0, deadline = 0;
  Time armed = INT64_MAX;  // its earliest entry among the deadlines, never later than its current deadline
  std::string peer_error;  // the error that ends its wait
  const char* phase = nullptr;
  int64_t step = 0;
  std::vector<Slowdown> slow;
  double speed = 1;
  RankReport report;
};

class Engine {
 public:
  using Lock = std::unique_lock<std::mutex>;
  Engine(const Scenario& scenario, bool traced);
  ~Engine();
  void run(const std::function<void(World&)>& rank_main);
  SimulationResult result();

  // Called by ranks, without the lock.
  Lock enter(int rank);  // takes the baton at the rank's own time
  void begin(int rank, const Work& work);
  void end(int rank);
  void sleep_until(int rank, Time at);
  Time now(int rank) const { return ranks_[static_cast<size_t>(rank)].now; }
  bool done(SimOperation& op);
  void wait(SimOperation& op, double deadline_s);
  size_t wait_any(std::span<SimOperation* const> parts, double deadline_s);

  // Called with the lock held.
  Time now() const { return now_; }
  Rank& rank(int id) { return ranks_[static_cast<size_t>(id)]; }
  const Scenario& scenario() const { return scenario_; }
  const Cluster& cluster() const { return cluster_; }
  void complete(SimOperation& op);
  // Calls the operation's arithmetic_ended() when the rank's communication thread has done this arithmetic.
  void arithmetic(SimOperation& op, double ns);
  // Charges work of the rank's communication thread that takes a core from its computing.
  void take_from_computing(Rank& r, double ns);
  void complete_later(const std::shared_ptr<SimOperation>& op, Time at);
  struct Channel {
    uint64_t group_and_kind, number;  // kind and number: a tag, or the number of a collective
    int from, to;
    bool operator==(const Channel&) const = default;
  };
  void post_send(const Channel& channel, std::shared_ptr<SimOperation> op, const std::byte* data, int64_t bytes, const char* label);
  void post_receive(const Channel& channel, std::shared_ptr<SimOperation> op, std::byte* data, int64_t bytes);
  // "rank 2 (node1) has not started it: it is in 'validation' at update 120"
  std::string lateness(int rank, const std::string& has_not) const;
  void hash(uint8_t kind, int rank, int64_t peer, int64_t bytes);
  void hash_payload(const std::byte* data, int64_t bytes) {
    if (scenario_.hash_payloads) hash_.add({data, static_cast<size_t>(bytes)});
  }
  // When these network cards are free of collectives and messages.
  Time network_free(const std::vector<int>& cards) const;
  void occupy_network(const std::vector<int>& cards, Time until);
  void count_messages(int64_t n) { messages_ += n; }

  const std::shared_ptr<Group>& world_group() const { return world_group_; }
  std::shared_ptr<Group> make_group(std::vector<int> ranks);
  Trace trace;

 private:
  enum Kind : uint8_t { wake, enter_link, left, enter_receiver, arrived, arithmetic_done, complete_op };
  enum Hashed : uint8_t { piece_event = 32, wait_event, failure_event, crash_event };  // events in the trace's hash besides the kinds above
  struct Event {
    Time time;
    uint64_t number;
    Kind kind;
    int rank;
    Message* message;
    std::shared_ptr<SimOperation> op;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return a.time != b.time ? a.time > b.time : a.number > b.number; }
  };
  struct ChannelHash {
    size_t operator()(const Channel& c) const;
  };
  struct Queue {
    Message *first = nullptr, *last = nullptr;  // messages posted on one side only, all on the same side
    bool sends = false;
  };

  void wait(Lock& lock, SimOperation& op, double deadline_s);
  void rank_thread(Rank& r, const std::function<void(World&)>& rank_main);
  Rank* dispatch();
  void pass(Lock& lock, Rank* next);
  void take(Lock& lock, Rank& r);
  bool next_deadline(Time before);
  void nothing_left();
  [[noreturn]] static void crash();  // the rank of this thread
  void crash_next();
  Rank* hand_over(Rank& r, Time at);
  void give_away(Lock& lock, Rank& r);
  void make_ready(Rank& r, Time at);
  void end_wait(Rank& r, std::string error);
  void fail(Rank& r, const std::exception_ptr& error);
  void fail_all(const std::exception_ptr& error, std::string text);
  void arm_deadline(Rank& r);
  Time notices(const Rank& r, const SimOperation& op) const;
  void require_heard(const SimOperation& op);
  std::string others_lost(const SimOperation& op) const;
  Time piece_time(Rank& r, const Work& work);
  void piece_timed(Rank& r);
  void start_sharing(Rank& r);
  void stop_sharing(Rank& r);
  void share_node(int node);
  double with_jitter(const Rank& r, double ns) const;
  double copying_ns(const Message& m) const;
  Time disturbed(Message& m);
  double chance(const Message& m, const MessageFault& fault, int what) const;
  void push(Time at, Kind kind, int rank, Message* message, std::shared_ptr<SimOperation> op = nullptr);
  void handle(Event& event);
  Message* message_for(const Channel& channel, bool send, int64_t bytes);
  void send_posted(Message& m);
  void start_link(Message& m);
  void sent(Message& m);
  void received(Message& m);
  void recycle(Message& m);
  int port(int rank, int other) const;
  int out_port(const Message& m) const;
  int in_port(const Message& m) const;
  Time transferred(int port, Time start, double ns) const;

  const Scenario scenario_;
  const Cluster cluster_;
  std::mutex mutex_;
  std::condition_variable all_finished_, slot_free_;
  int finished_ = 0, slots_ = 0, core_ = 0;
  bool sharing_ = false;  // whether ranks are faster while others of their node wait
  std::deque<Rank> ranks_;
  Time now_ = 0;
  uint64_t next_number_ = 0, ended_ = 0;  // of events; of operations that have ended
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::priority_queue<std::pair<Time, int>, std::vector<std::pair<Time, int>>, std::greater<>> deadlines_;
  std::vector<Crash> crashes_;               // those to come, the next one last
  Rank* awaited_ = nullptr;                  // the baton is reserved for this rank, whose body still computes
  bool any_crashed_ = false, cuts_ = false;  // cuts_: the network of some node is cut at some time
  std::exception_ptr first_error_;
  std::string failure_;  // "rank 3 failed: ..."
  std::unordered_map<Channel, Queue, ChannelHash> channels_;
  std::deque<Message> messages_store_;
  Message* free_messages_ = nullptr;
  std::vector<Time> out_free_, in_free_, collective_free_;  // the first two by port (network cards, then ranks), the third by network card
  Fnv hash_;
  int64_t messages_ = 0, event_count_ = 0, lost_ = 0, delayed_ = 0, doubled_ = 0;
  std::shared_ptr<Group> world_group_;
  std::vector<std::weak_ptr<Group>> groups_;
};

}  // namespace starling::sim
