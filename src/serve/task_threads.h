// A few threads that do what would keep others waiting, in the order that it came.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace starling {

class TaskThreads {
 public:
  // ResourceError when the system gives no thread; fewer than `count` will do.
  TaskThreads(const char* purpose, size_t count);
  ~TaskThreads() { close(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // The task must not throw. Forgotten after close().
  void add(std::function<void()> task);
  // Waits for the tasks that have begun, and forgets the others.
  void close();

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace starling
