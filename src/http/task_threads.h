// A few threads that do what would keep others waiting. A long task gives way to others again and again, so that all that are under way
// advance side by side and a large one holds up none that is small.
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
  // At most `count` tasks are begun and not ended, and `at_once` of them run. ResourceError when the system gives no thread; fewer than
  // `count` will do. The threads come behind those that translate.
  TaskThreads(const char* purpose, size_t count, size_t at_once);
  ~TaskThreads() { close(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // The task, of so many bytes, must not throw. Forgotten after close().
  void add(int64_t bytes, std::function<void()> task);
  // What a task of so many bytes would wait for others, seconds, as fast as tasks have been lately: those that are not ended run until they
  // have done as much as it has to do.
  double expected_wait(int64_t bytes) const;
  // Waits for the tasks that have begun, and forgets the others.
  void close();

  // Called by a task between pieces of its work: lets the next run where it has run for some milliseconds and others wait. Does nothing
  // elsewhere.
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
  std::list<int64_t> begun_;        // bytes of the tasks that have begun
  size_t free_turns_;               // of tasks that may run
  uint64_t next_ = 0, served_ = 0;  // turns that were asked for, and given
  double seconds_ = 0, bytes_ = 0;  // of what was done lately
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace starling
