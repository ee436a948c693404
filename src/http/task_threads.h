// A few threads for tasks that would keep others waiting. A long task yields repeatedly, so that all tasks advance side by side and a large
// one does not hold up small ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace starling {

class TaskThreads {
 public:
  // Up to `count` tasks are in progress at a time, and `at_once` of them run. `purpose` names the work in messages. Throws ResourceError if
  // the system gives no thread at all; fewer than `count` are enough. The threads have lower priority than those that translate.
  TaskThreads(const char* purpose, size_t count, size_t at_once);
  ~TaskThreads() { close(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // Adds a task of `bytes` bytes, which must not throw. After close() tasks are dropped.
  void add(int64_t bytes, std::function<void()> task);
  // Estimates how many seconds a task of `bytes` bytes would wait for others, from the recent speed: each unfinished task runs until it has
  // done as much work as the new one.
  double expected_wait(int64_t bytes) const;
  // Waits for tasks that have begun, and drops the others.
  void close();

  // To be called by a task between pieces of its work: lets the next task run if this one has run for some milliseconds and others wait.
  // Does nothing on other threads.
  static void give_way();

 private:
  struct Task {
    int64_t bytes;
    std::function<void()> run;
  };
  void work();
  void wait_for_turn(std::unique_lock<std::mutex>& lock);
  void end_turn(std::unique_lock<std::mutex>& lock);
  void pass_turn();

  mutable std::mutex mutex_;
  std::condition_variable changed_, turns_changed_;
  std::deque<Task> tasks_;
  std::list<int64_t> begun_;        // bytes of each task that has begun
  size_t free_turns_;               // how many more tasks may run
  uint64_t next_ = 0, served_ = 0;  // turns requested and granted
  double seconds_ = 0, bytes_ = 0;  // of recent tasks
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace starling
