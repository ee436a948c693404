// Copies of files that are written later, in memory that is kept from one checkpoint to the next: getting new pages from the system takes
// longer than copying.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "storage/checkpoint.h"

namespace starling {

class Copies {
 public:
  // threads: that copy a large piece together; sharing: ranks that share this host's memory.
  explicit Copies(int threads = 1, int sharing = 1) : threads_(threads), sharing_(sharing) {}
  // Takes the memory for copies of these parts. Returns false if that is more than a third of what is usable: micro-batches take half.
  bool make_room(std::span<const Part> parts);
  // Returns parts with the same content, which stays until the next call. There must be room. Throws what a part's write throws.
  std::vector<Part> of(std::span<const Part> parts);

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    uint64_t capacity = 0;
  };
  const int threads_, sharing_;
  std::vector<Block> blocks_;  // by the parts' order
};

}  // namespace starling
