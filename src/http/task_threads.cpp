#include "http/task_threads.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/start_threads.h"

namespace starling {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTaskNice = 10;
constexpr std::chrono::milliseconds kTurn{5};
constexpr double kForget = 0.9;  // weight that earlier tasks keep in the mean when another one ends

// What the current thread is doing.
struct Current {
  TaskThreads* threads = nullptr;
  Clock::time_point since;  // start of its turn
  double seconds = 0;       // total of its earlier turns
};
thread_local Current current;

double seconds_since(Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

}  // namespace

TaskThreads::TaskThreads(const char* purpose, size_t count, size_t at_once) : free_turns_(at_once) {
  try {
    while (threads_.size() < count) threads_.push_back(start_thread(purpose, [this] { work(); }));
  } catch (const Error&) {
    if (threads_.empty()) throw;
  }
}

void TaskThreads::close() {
  std::deque<Task> forgotten;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    forgotten.swap(tasks_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void TaskThreads::add(int64_t bytes, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    tasks_.push_back({bytes, std::move(task)});
  }
  changed_.notify_one();
}

double TaskThreads::expected_wait(int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (bytes_ == 0) return 0;
  double before = 0;
  for (const Task& task : tasks_) before += static_cast<double>(std::min(task.bytes, bytes));
  for (const int64_t begun : begun_) before += static_cast<double>(std::min(begun, bytes));
  return before * seconds_ / bytes_;
}

void TaskThreads::give_way() {
  if (current.threads && Clock::now() - current.since >= kTurn) current.threads->pass_turn();
}

// Grants turns in the order in which they were requested.
void TaskThreads::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  const uint64_t mine = next_++;
  turns_changed_.wait(lock, [&] { return served_ == mine && free_turns_ > 0; });
  ++served_;
  --free_turns_;
  if (free_turns_ > 0) turns_changed_.notify_all();
  current.since = Clock::now();
}

void TaskThreads::end_turn(std::unique_lock<std::mutex>&) {
  current.seconds += seconds_since(current.since);
  ++free_turns_;
  turns_changed_.notify_all();
}

void TaskThreads::pass_turn() {
  std::unique_lock lock(mutex_);
  if (next_ == served_) {  // nobody waits
    current.seconds += seconds_since(current.since);
    current.since = Clock::now();
    return;
  }
  end_turn(lock);
  wait_for_turn(lock);
}

void TaskThreads::work() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kTaskNice);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
    if (closed_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    const auto begun = begun_.insert(begun_.end(), task.bytes);
    current = {this, {}, 0};
    wait_for_turn(lock);
    lock.unlock();
    task.run();
    task.run = nullptr;  // freeing what it holds may take long, and may need the lock
    lock.lock();
    end_turn(lock);
    begun_.erase(begun);
    seconds_ = kForget * seconds_ + current.seconds;
    bytes_ = kForget * bytes_ + static_cast<double>(std::max<int64_t>(1, task.bytes));
    current = {};
  }
}

}  // namespace starling
