// What near-copies are compared by: the shingles of a side, which are its pairs of neighbouring words. Where no spaces divide words, each
// letter is one. Case, punctuation and numbers do not count: every number is the same word, and so are several in a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cleaning/judged_side.h"

namespace starling {

// Returns the hashes of a side's shingles, ascending and each once; none if the side is too short to be a near-copy (fewer than four words,
// two letters without spaces for one word, or fewer than three different shingles), or has more than 10,000.
std::vector<uint32_t> shingles(const JudgedSide& side);

// Returns whether the Jaccard similarity of two sets, the shingles of both over those of either, is at least the threshold; two empty sets
// are equal. Each set is ascending.
bool are_near(std::span<const uint32_t> a, std::span<const uint32_t> b, double threshold);

}  // namespace starling
