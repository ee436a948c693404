// Text that is kept for validation and tests, so that training text can be told from it.
#pragma once

#include <unordered_set>
#include <vector>

#include "cleaning/judged_side.h"
#include "data/corpus.h"

namespace starling {

// The hashes by which copies are found: of what copies may not differ in.
struct CopyKeys {
  CopyKeys() = default;
  CopyKeys(const JudgedSide& source_side, const JudgedSide& target_side);
  uint64_t source = 0, target = 0, pair = 0;
};

class HeldOut {
 public:
  // Reads the texts; `repair`: they are compared as repaired. Throws what PairReader does.
  HeldOut(const std::vector<CorpusFiles>& texts, bool repair);
  // Returns whether the pair is there or, if it is long, whether one side is.
  bool has(const JudgedSide& source, const JudgedSide& target, const CopyKeys& keys) const;
  // Returns whether a long line of one language is on either side.
  bool has(const JudgedSide& line) const;

 private:
  std::unordered_set<uint64_t> keys_;
};

}  // namespace starling
