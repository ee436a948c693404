#include "base/start_threads.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/resource_error.h"

namespace starling {
namespace {

[[noreturn]] void no_thread(const std::string& which, const std::system_error& e) {
  throw ResourceError(
      fmt::format("{} cannot be started: {}; use fewer threads (--threads, train.threads), or allow more processes (ulimit -u, the "
                  "container's pids.max) and more memory for their stacks (ulimit -v, ulimit -s)",
                  which, e.code().message()));
}

}  // namespace

std::thread start_thread(const char* purpose, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& e) {
    no_thread(fmt::format("a thread for {}", purpose), e);
  }
}

void work_side_by_side(size_t count, const std::function<void(size_t)>& work) {
  std::vector<std::exception_ptr> failures(std::max<size_t>(count, 1));
  const auto guarded = [&](size_t i) {
    try {
      work(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(failures.size());
  try {
    while (others.size() + 1 < count) others.emplace_back(guarded, others.size() + 1);
  } catch (const std::exception&) {  // the threads that did start do all the work
  }
  guarded(0);
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

void require_threads(int count) {
  std::mutex mutex;
  std::condition_variable changed;
  bool enough = false;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(std::max(count, 0)));
  const auto end = [&] {
    {
      const std::lock_guard lock(mutex);
      enough = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return enough; });
      });
  } catch (const std::system_error& e) {
    end();
    no_thread(fmt::format("computing thread {} of {}", threads.size() + 2, count + 1), e);
  }
  end();
}

}  // namespace starling
