#include "serve/task_threads.h"

#include "base/error.h"
#include "base/start_threads.h"

namespace starling {

TaskThreads::TaskThreads(const char* purpose, size_t count) {
  try {
    while (threads_.size() < count) threads_.push_back(start_thread(purpose, [this] { work(); }));
  } catch (const Error&) {
    if (threads_.empty()) throw;
  }
}

void TaskThreads::close() {
  std::deque<std::function<void()>> forgotten;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    forgotten.swap(tasks_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void TaskThreads::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void TaskThreads::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (closed_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace starling
