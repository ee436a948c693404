// How much memory this process may still take. The machine's free memory is only one bound: a container's or batch system's cgroup
// kills without a word where its limit is passed, and ulimit makes allocations fail. Whoever sizes buffers asks here.
#pragma once

#include <cstdint>
#include <string>

namespace starling {

struct UsableMemory {
  int64_t bytes = 0;
  std::string limit;  // the bound that decides, in words with its value and place; empty: the machine's own free memory
  // For messages: "812 MiB, which is what ... leaves".
  std::string text() const;
};

// The smallest of the machine's free memory (MemAvailable), what the cgroup of this process and each of its ancestors leave (versions 2
// and 1; page cache that can be given up at once counts as free), and what ulimit -v and -d leave. Never below 0; 1 GiB where nothing
// can be found out. `root` is the directory that holds proc/ and the cgroups' mount points: other than "/" for tests.
UsableMemory usable_memory(const std::string& root = "/");

struct PeakMemory {
  int64_t own = 0;       // bytes resident at once: this process
  int64_t children = 0;  // the largest of its children that have ended
};
PeakMemory peak_memory();

}  // namespace starling
