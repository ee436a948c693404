// NaN and infinity have an exponent of all ones: adding one to the exponent carries into the sign bit for them and for nothing else. The
// loop uses integers only, so that no floating-point option of the compiler can drop the check, and blocks of constant size, so that the
// compiler vectorises it.
#include "tensor/finite.h"

#include <cmath>
#include <cstring>

namespace starling {

int64_t first_not_finite(std::span<const float> values) {
  constexpr size_t block = 4096;
  const size_t n = values.size();
  size_t at = 0;
  for (; at + block <= n; at += block) {
    uint32_t carried = 0;
    for (size_t i = 0; i < block; ++i) {
      uint32_t bits;
      std::memcpy(&bits, &values[at + i], sizeof bits);
      carried |= (bits & 0x7fffffffu) + 0x00800000u;
    }
    if (carried >> 31) break;
  }
  for (; at < n; ++at)
    if (!std::isfinite(values[at])) return static_cast<int64_t>(at);
  return -1;
}

}  // namespace starling
