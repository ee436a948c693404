// How much more memory this process may use. The machine's free memory is only one bound: the cgroup of a container or batch system kills
// a process without a message when its limit is exceeded, and ulimit makes allocations fail. Code that sizes buffers asks here.
#pragma once

#include <cstdint>
#include <string>

namespace starling {

struct UsableMemory {
  int64_t bytes = 0;
  std::string limit;       // the bound that applies, in words, with its value and location; empty: the machine's free memory
  bool addresses = false;  // the bound counts what is reserved, used or not (ulimit)
  // For messages: "812 MiB, which is what ... leaves".
  std::string text() const;
};

// Returns the smallest of the machine's free memory (MemAvailable), what the cgroup of this process and each of its ancestors leave
// (versions 2 and 1; page cache that can be reclaimed at once counts as free), and what ulimit -v and -d leave. Never below 0; 1 GiB if
// nothing can be determined. `root` is the directory that holds proc/ and the cgroups' mount points; tests pass one other than "/".
UsableMemory usable_memory(const std::string& root = "/");

struct PeakMemory {
  int64_t own = 0;       // bytes resident at once: this process
  int64_t children = 0;  // the largest of its children that have ended
};
PeakMemory peak_memory();
// Returns the bytes resident now; 0 if the system does not say.
int64_t resident_memory();
// Returns how many bytes of this range were touched, in whole pages; all of them if the system does not say.
int64_t resident_bytes(const void* at, int64_t bytes);

}  // namespace starling
