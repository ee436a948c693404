// Lines of several files for a reader that takes many at once, and from a pipe as they come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace starling {

// Passes lines of several files through a bounded queue, filled by a thread. A thread blocked on a terminal cannot be woken, so it is left
// behind if its lines are no longer wanted; what it uses is shared with it and outlives the queue.
class LineQueue {
 public:
  LineQueue(std::vector<std::string> paths, size_t capacity);
  ~LineQueue();

  // Returns between one and `most` lines, or none at the end. It waits a moment for more, since a batch costs less than its lines one by
  // one. For files it waits until there are enough, so that batches do not depend on the reading speed. Rethrows the reader's error after
  // the lines before it are taken.
  std::vector<std::string> take(size_t most);

  // Estimates the number of lines in files of `bytes` bytes; 0: not known yet.
  int64_t expected_lines(uint64_t bytes) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace starling
