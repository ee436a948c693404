// Scores as whole numbers with the same order, to rank pairs by and to count them in bins.
#pragma once

#include <bit>
#include <cstdint>

namespace starling {

// A number that is the larger the larger the score is.
inline uint32_t order_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
inline float score_of(uint32_t order) { return std::bit_cast<float>(order >> 31 ? order & 0x7FFFFFFFu : ~order); }

}  // namespace starling
