// Threads where the system may refuse them: a limit on processes (ulimit -u, a container's pids.max) or no memory for another stack.
// std::thread alone would end the program without a word as soon as others are running.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

namespace starling {

// A thread that runs `body`; ResourceError that says what it is for when the system gives none.
std::thread start_thread(const char* purpose, std::function<void()> body);

// work(0) on the caller and work(1) to work(count - 1) on threads of their own; comes back when all have ended and rethrows the failure
// of the lowest number. Threads that cannot be started are left out: each call must take what is to be done from a common supply.
void work_side_by_side(size_t count, const std::function<void(size_t)>& work);

// ResourceError unless the system gives `count` threads besides the caller at once. For whoever computes in a runtime that would end the
// program instead.
void require_threads(int count);

}  // namespace starling
