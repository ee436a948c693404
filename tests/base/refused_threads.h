// While it lives, the system gives this process no more than so many further threads: their stacks do not fit into the address space.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace starling {

class RefusedThreads {
 public:
  // More than 0 are not possible under sanitizers, which reserve address space beyond any limit.
  explicit RefusedThreads(size_t given = 0) {
    constexpr size_t kStack = size_t{1} << 30;
    pthread_getattr_default_np(&attributes_before_);
    getrlimit(RLIMIT_AS, &limit_before_);
    set_stack(given == 0 ? size_t{1} << 48 : kStack);
    if (given == 0) return;
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = limit_before_;
    limit.rlim_cur = pages * static_cast<rlim_t>(getpagesize()) + given * kStack + kStack / 2;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~RefusedThreads() {
    pthread_setattr_default_np(&attributes_before_);
    pthread_attr_destroy(&attributes_before_);
    setrlimit(RLIMIT_AS, &limit_before_);
  }
  RefusedThreads(const RefusedThreads&) = delete;
  RefusedThreads& operator=(const RefusedThreads&) = delete;

 private:
  static void set_stack(size_t bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }
  pthread_attr_t attributes_before_;
  rlimit limit_before_;
};

}  // namespace starling
