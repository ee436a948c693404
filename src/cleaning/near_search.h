// Finds near-copies among all judged pairs within a given memory. The pairs come from the best to the worst; each is compared with those
// before it that stay, have a band in common with it (cleaning/min_hash.h) and so may be alike, and goes if it is one's near-copy. So pairs
// that resemble only one that went stay. In memory are the pairs that stay of as many as fit, and a pass over the others follows for each
// such block: the result is that of one block.
#pragma once

#include <cstdint>
#include <functional>

#include "cleaning/judged_pairs.h"

namespace starling {

struct NearSearch {
  double threshold = 0;  // Jaccard similarity of the shingles of both sides
  uint64_t bytes = 0;    // for a block
  int threads = 1;
  std::function<void(uint64_t pairs)> told = {};  // called now and then with how many have been compared with all before them
};

// Marks the pairs without a mark that are near-copies of one with a better score, or an equal one and a lower number. Of each pair at most
// 5,000 that were not near enough are looked at (NearBlock::find), the best first, so that a million that resemble each other a little do
// not take forever.
void mark_near_copies(const Segments& segments, const NearSearch& search);

}  // namespace starling
