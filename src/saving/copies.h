// Copies of files that are written later, in memory that is kept from one checkpoint to the next: getting new pages from the system takes
// longer than copying.
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "storage/checkpoint.h"

namespace starling {

class Copies {
 public:
  // threads: that copy a large piece together; sharing: ranks that share this host's memory.
  explicit Copies(int threads = 1, int sharing = 1) : threads_(threads), sharing_(sharing) {}
  ~Copies() { join(); }
  Copies(const Copies&) = delete;
  // Whether copies of this many bytes may be taken: at most a third of the usable ones.
  static bool fit(double bytes, double usable) { return 3 * bytes <= usable; }
  // Begins to take memory for this many bytes beside training, so that the first checkpoint need not wait for it; does nothing if they do
  // not fit, or if no thread can be started.
  void prepare(uint64_t bytes);
  // Takes the memory for copies of these parts. Returns false if they do not fit.
  bool make_room(std::span<const Part> parts);
  // Returns parts with the same content, which stays until the next call. There must be room. Throws what a part's write throws.
  std::vector<Part> of(std::span<const Part> parts);

 private:
  bool take(uint64_t bytes);
  void join();
  const int threads_, sharing_;
  std::unique_ptr<std::byte[]> bytes_;
  uint64_t capacity_ = 0;
  std::thread preparing_;
};

}  // namespace starling
