// The communication thread of a process. It makes every call of MPI, from MPI_Init to MPI_Finalize: MPI needs no locks then, operations
// advance while the others compute, and heartbeats go on while they hang. The rest of the program gives it operations through a queue.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/heartbeat.h"

namespace starling {

// Memory for schedules, kept: asking the kernel for hundreds of MB in every step would cost more than the sums. Used by one thread.
class ScratchPool {
 public:
  std::shared_ptr<Storage> take(int64_t bytes);
  void give_back(std::shared_ptr<Storage> storage);

 private:
  std::vector<std::shared_ptr<Storage>> free_;  // the least recently used first
};

// A communicator of MPI, twice: so that no message of a collective meets one that a caller sent. Lives as long as the engine.
struct Group {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
  int rank = 0;
  std::vector<int> members;  // world ranks
  bool world = false;
};

class Engine;

// Before MPI_Abort: mpirun must have read what was printed before it ends everything.
void let_output_out();

// Something that the thread does: begin() once, then advance() until it says done.
class Task : public Operation {
 public:
  enum class Progress : uint8_t { none, some, done };
  // `collective`: its number on the communicator of all ranks, or -1; `peer`: world rank of the other side of a message, or -1.
  Task(Engine& engine, const Group& group, std::string what, int64_t collective, int peer)
      : engine_(engine), group_(group), what_(std::move(what)), collective_(collective), peer_(peer) {}
  virtual void begin() = 0;
  virtual Progress advance() = 0;
  virtual void release() {}  // gives up what it holds, when it has ended, well or not

  // A wait with a longer deadline is patient with ranks that work, not with those that have not been heard of for so long.
  void set_silence(double seconds) { silence_s_ = seconds; }
  bool done() override { return done_.load(std::memory_order_acquire); }
  void wait(double deadline_s) override;
  size_t wait_any(std::span<Operation* const> operations, double deadline_s) override;

 protected:
  Engine& engine_;
  const Group& group_;

 private:
  friend class Engine;
  const std::string what_;
  const int64_t collective_;
  const int peer_;
  double silence_s_ = INFINITY;
  std::atomic<bool> done_ = false;
  int64_t ended_ = 0;  // when, counted in operations of this process that had ended; under the engine's mutex
  std::exception_ptr error_;
};

class Engine {
 public:
  Engine();   // joins the other ranks
  ~Engine();  // leaves MPI together with the others, however long those still work
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Group& world() const { return *world_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  // by world rank
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }

  void submit(const std::shared_ptr<Task>& task);
  void note(const char* phase, int64_t step);
  void note(const CardCounts& card);
  std::vector<RankNews> news(const Group& group) const;
  Traffic traffic() const;
  void count(int64_t sent, int64_t received, int64_t messages);
  // Ends all ranks with MPI_Abort; comes back if that has not happened after some seconds.
  void abort(int status);

  // For tasks, in the communication thread.
  ScratchPool& scratch() { return scratch_; }
  const Group& split(const Group& group, int color);

 private:
  friend class Task;
  using Tasks = std::deque<std::shared_ptr<Task>>;
  enum class State : uint8_t { starting, running, closing, ended };

  void main();
  void start_mpi();
  void serve();
  bool advance_all();
  void end_task(Task& task, const std::exception_ptr& error);
  void beat(int64_t now);
  void pause(bool moved);
  void stop_mpi();
  const Group& add_group(MPI_Comm comm, bool world);
  void enter_own_beat(int64_t now);
  // Until that is so; PeerError when the deadline comes first, or a rank that may be needed is silent.
  void wait(std::span<const Task* const> tasks, double deadline_s, const std::function<bool()>& ended);
  // The rest is called with the mutex held.
  static std::vector<int> waited_for(std::span<const Task* const> tasks);  // world ranks, each once
  double silent_s() const;                                                 // a rank unheard for longer than this counts as dead
  double silence_s(int rank) const;                                        // since it was heard of
  int longest_silent(const std::vector<int>& ranks) const;
  int lost_rank(const std::vector<int>& ranks, double allowed_s) const;  // silent for longer than is allowed; -1: none
  bool somebody_is_silent(std::span<const Task* const> tasks) const;
  std::string lateness(std::span<const Task* const> tasks, double waited_s);

  // Written before the constructor returns, then constant.
  const Group* world_ = nullptr;
  std::vector<std::string> hosts_;
  int local_rank_ = 0, local_size_ = 1;

  // Of the communication thread.
  Tasks active_;
  std::vector<std::unique_ptr<Group>> groups_;
  ScratchPool scratch_;
  Heartbeats heartbeats_;
  int64_t next_beat_ns_ = 0;
  int quiet_sweeps_ = 0;

  // Shared, under the mutex.
  mutable std::mutex mutex_;
  std::condition_variable to_thread_, from_thread_;
  State state_ = State::starting;
  Tasks queue_;
  std::vector<Heartbeats::Known> known_;  // by world rank
  int64_t beat_interval_ns_;
  int64_t looked_ns_ = 0;             // when the communication thread last took in heartbeats
  bool all_heard_ = true;             // lately, every rank
  double last_silence_s_ = INFINITY;  // of the last operation started
  int64_t waited_ns_ = 0;
  int64_t collectives_ = 0, operations_ = 0;  // started
  int64_t ended_ = 0;                         // operations
  std::exception_ptr start_error_;

  std::atomic<int64_t> sent_ = 0, received_ = 0, messages_ = 0;
  std::atomic<int> waiting_ = 0;  // threads in Task::wait
  std::atomic<int> abort_status_ = -1;
  std::thread thread_;
};

}  // namespace starling
