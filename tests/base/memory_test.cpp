// What a process may still take, from made-up /proc and cgroup trees, and from the real one under a lowered ulimit.
#include "base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "base/processor_use.h"

namespace starling {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;
constexpr const char* kVersion2 = "30 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kVersion1 =
    "31 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

class MemoryTree : public testing::Test {
 protected:
  MemoryTree() {
    char name[] = "/tmp/starling_memory_XXXXXX";
    root_ = mkdtemp(name);
    write("proc/meminfo", "MemTotal:       65536000 kB\nMemFree:         1024 kB\nMemAvailable:   10240000 kB\n");
    write("proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max data size             unlimited            unlimited            bytes     \n"
          "Max address space         unlimited            unlimited            bytes     \n");
    write("proc/self/status", "Name:\tstarling\nVmPeak:\t  900000 kB\nVmSize:\t  512000 kB\nVmData:\t  102400 kB\n");
  }
  ~MemoryTree() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << text;
  }
  UsableMemory usable() const { return usable_memory(root_); }
  std::string root_;
};

TEST_F(MemoryTree, WithoutLimitsItIsTheMachinesFreeMemory) {
  EXPECT_EQ(usable().bytes, 10000 * kMiB);
  EXPECT_EQ(usable().limit, "");
  EXPECT_EQ(usable().text(), "10000 MiB, which is free on this machine");
}

// The same trees have quotas of processor time: docker --cpus, and batch systems.
TEST_F(MemoryTree, ProcessorTimeOfAContainerIsTheLeastQuota) {
  EXPECT_EQ(processor_quota(root_), 0);
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(processor_quota(root_), 0);
  write("sys/fs/cgroup/user/cpu.max", "300000 100000\n");
  EXPECT_EQ(processor_quota(root_), 3);
  write("sys/fs/cgroup/user/job/cpu.max", "75000 50000\n");
  EXPECT_EQ(processor_quota(root_), 1.5);
  write("proc/self/mountinfo", kVersion1);
  write("proc/self/cgroup", "2:cpu,cpuacct:/docker/abc\n4:memory:/\n");
  write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processor_quota(root_), 0);
  write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(processor_quota(root_), 1);
}

TEST_F(MemoryTree, WhereNothingCanBeReadItIsOneGibibyte) { EXPECT_EQ(usable_memory(root_ + "/nowhere").bytes, 1024 * kMiB); }

TEST_F(MemoryTree, VersionTwoLeavesTheLimitLessUseAndGivesReclaimableCacheBack) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", std::to_string(1000 * kMiB));
  write("sys/fs/cgroup/user/job/memory.current", std::to_string(600 * kMiB));
  write("sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file " + std::to_string(100 * kMiB) + "\nactive_file 5\n");
  EXPECT_EQ(usable().bytes, 500 * kMiB);
  EXPECT_EQ(usable().text(), "500 MiB, which is what the cgroup's limit of 1000 MiB (/sys/fs/cgroup/user/job/memory.max) leaves");
}

TEST_F(MemoryTree, AnAncestorsLimitCountsToo) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", "max\n");
  write("sys/fs/cgroup/user/memory.max", std::to_string(300 * kMiB) + "\n");
  write("sys/fs/cgroup/user/memory.current", std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(usable().bytes, 100 * kMiB);
  EXPECT_THAT(usable().limit, HasSubstr("/sys/fs/cgroup/user/memory.max"));
}

TEST_F(MemoryTree, MoreUsedThanAllowedLeavesNothing) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "4096\n");
  write("sys/fs/cgroup/memory.current", "8192\n");
  EXPECT_EQ(usable().bytes, 0);
}

TEST_F(MemoryTree, VersionOneIsFoundAmongItsControllersAndWithinAContainersPart) {
  write("proc/self/mountinfo", kVersion1);
  write("proc/self/cgroup", "2:cpu:/\n4:devices,memory:/docker/abc/job\n0::/\n");
  write("sys/fs/cgroup/memory/docker/abc/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(usable().limit, "");
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", std::to_string(200 * kMiB));
  write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", std::to_string(150 * kMiB));
  write("sys/fs/cgroup/memory/docker/abc/memory.stat",
        "inactive_file 1\nhierarchical_memory_limit 5\ntotal_inactive_file " + std::to_string(10 * kMiB) + "\n");
  EXPECT_EQ(usable().bytes, 60 * kMiB);
  // As a container without a name space of its own sees it: the path is the host's, the mount point is the container's group.
  write("proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(40 * kMiB));
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(10 * kMiB));
  EXPECT_EQ(usable().bytes, 30 * kMiB);
  EXPECT_THAT(usable().limit, HasSubstr("/sys/fs/cgroup/memory/job/memory.limit_in_bytes"));
}

TEST_F(MemoryTree, TheProcessOwnLimitsCount) {
  write("proc/self/limits",
        "Max data size             314572800            unlimited            bytes     \n"
        "Max address space         629145600            unlimited            bytes     \n");
  EXPECT_EQ(usable().bytes, 100 * kMiB);  // 600 MiB less the 500 of VmSize; data: 300 less 100
  EXPECT_EQ(usable().limit, "the limit of 600 MiB on address space (ulimit -v)");
  write("proc/self/limits", "Max data size             209715200            unlimited            bytes     \n");
  EXPECT_EQ(usable().bytes, 100 * kMiB);
  EXPECT_EQ(usable().limit, "the limit of 200 MiB on data (ulimit -d)");
}

// The kernel's own files have the form that is expected here.
TEST(Memory, ALoweredUlimitIsSeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve address space beyond any limit";
#endif
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t limit = pages * static_cast<rlim_t>(getpagesize()) + 64 * kMiB;
    const rlimit both{limit, limit};
    setrlimit(RLIMIT_AS, &both);
    const UsableMemory m = usable_memory();
    _exit(m.bytes > 0 && m.bytes <= 64 * kMiB && m.limit.find("ulimit -v") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Memory, OnlyTouchedPagesAreResident) {
  constexpr int64_t kSize = 16 * kMiB;
  auto* const at = static_cast<char*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  madvise(at, kSize, MADV_NOHUGEPAGE);
  EXPECT_EQ(resident_bytes(at, kSize), 0);
  for (int64_t i = 4 * kMiB; i < 7 * kMiB; i += 4096) at[i] = 1;
  EXPECT_EQ(resident_bytes(at, kSize), 3 * kMiB);
  EXPECT_EQ(resident_bytes(at + 5 * kMiB + 100, kMiB), kMiB);
  EXPECT_EQ(resident_bytes(at, 4 * kMiB), 0);
  EXPECT_EQ(resident_bytes(at, 0), 0);
  munmap(at, kSize);
}

// In a process of its own: what this one's children took stays on its account.
TEST(Memory, ThePeakOfChildrenIsThatOfTheLargestAndNotOfTheParent) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  const auto ended = [](const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  };
  const auto take = [](int64_t bytes) {
    std::vector<char> memory(static_cast<size_t>(bytes));
    for (size_t i = 0; i < memory.size(); i += 4096) memory[i] = 1;
    return memory.back();
  };
  EXPECT_EQ(ended([&] {
              if (peak_memory().children != 0) return 1;
              const int64_t own = peak_memory().own;
              for (const int64_t size : {100, 200, 50})
                if (ended([&] { return int{take(size * kMiB)}; }) != 0) return 2;
              const PeakMemory peak = peak_memory();
              if (peak.children < 200 * kMiB || peak.children > 200 * kMiB + own + 20 * kMiB) return 3;
              if (peak.own > own + 20 * kMiB) return 4;
              take(300 * kMiB);
              return peak_memory().own >= 300 * kMiB && peak_memory().children == peak.children ? 0 : 5;
            }),
            0)
      << "the status is 256 times the number of what is wrong";
}

}  // namespace
}  // namespace starling
