// The communication thread of a process. It makes every MPI call, from MPI_Init to MPI_Finalize, so MPI needs no locks, operations advance
// while other threads compute, and heartbeats continue while those hang. The rest of the program submits operations through a queue.
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

// Keeps memory for schedules: asking the kernel for hundreds of MB in every step would cost more than the sums. Used by one thread.
class ScratchPool {
 public:
  std::shared_ptr<Storage> take(int64_t bytes);
  void give_back(std::shared_ptr<Storage> storage);

 private:
  std::vector<std::shared_ptr<Storage>> free_;  // the least recently used first
};

// An MPI communicator, twice, so that messages of collectives never match those of callers. Lives as long as the engine.
struct Group {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
  int rank = 0;
  std::vector<int> members;  // world ranks
  bool world = false;
};

class Engine;

// Call before MPI_Abort: gives mpirun time to read the output before it ends everything.
void let_output_out();

// Something that the communication thread does: begin() once, then advance() until it returns done.
class Task : public Operation {
 public:
  enum class Progress : uint8_t { none, some, done };
  // `collective`: its number on the communicator of all ranks, or -1; `peer`: world rank of the other side of a message, or -1.
  Task(Engine& engine, const Group& group, std::string what, int64_t collective, int peer)
      : engine_(engine), group_(group), what_(std::move(what)), collective_(collective), peer_(peer) {}
  virtual void begin() = 0;
  virtual Progress advance() = 0;
  virtual void release() {}  // gives up what it holds after it has ended, successfully or not

  // A wait with a longer deadline than this tolerates ranks that work, but not ranks without a heartbeat for this long.
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
  int64_t ended_ = 0;  // the number of operations of this process that had ended by then; under the engine's mutex
  std::exception_ptr error_;
};

class Engine {
 public:
  Engine();   // joins the other ranks
  ~Engine();  // leaves MPI together with the others, however long they still work
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
  // Ends all ranks with MPI_Abort; returns if that has not happened after some seconds.
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
  // Waits until ended() is true. Throws PeerError if the deadline comes first, or if a rank that may be needed is silent.
  void wait(std::span<const Task* const> tasks, double deadline_s, const std::function<bool()>& ended);
  // All functions below are called with the mutex held.
  static std::vector<int> waited_for(std::span<const Task* const> tasks);  // by world rank, each once
  double silent_s() const;                                                 // a rank without a heartbeat for longer than this counts as dead
  double silence_s(int rank) const;                                        // since its last heartbeat
  int longest_silent(const std::vector<int>& ranks) const;
  int lost_rank(const std::vector<int>& ranks, double allowed_s) const;  // silent for longer than allowed; -1: none
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
  int64_t moved_ns_ = 0;  // when something last moved

  // Shared, under the mutex.
  mutable std::mutex mutex_;
  std::condition_variable to_thread_, from_thread_;
  State state_ = State::starting;
  Tasks queue_;
  std::vector<Heartbeats::Known> known_;  // by world rank
  int64_t beat_interval_ns_;
  int64_t looked_ns_ = 0;             // when the communication thread last took in heartbeats
  bool all_heard_ = true;             // every rank, recently
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
