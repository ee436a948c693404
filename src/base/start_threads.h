// Starts threads where the system may refuse them: because of a limit on processes (ulimit -u, a container's pids.max) or for lack of
// memory for another stack. With std::thread alone the program would be terminated without a message if other threads are running.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

namespace starling {

// Starts a thread that runs `body`. Throws ResourceError, naming the purpose, if the system refuses.
std::thread start_thread(const char* purpose, std::function<void()> body);

// Runs work(0) on the calling thread and work(1) to work(count - 1) on threads of their own, waits for all and rethrows the failure with
// the lowest number. Threads that cannot be started are left out, so each call must take its work from a shared queue.
void work_side_by_side(size_t count, const std::function<void(size_t)>& work);

// Throws ResourceError unless the system can run `count` threads at once besides the caller. Call it before using a runtime that would
// terminate the program instead.
void require_threads(int count);

}  // namespace starling
