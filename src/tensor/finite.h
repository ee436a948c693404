// Whether numbers are numbers: weights are looked at once when they are loaded, so it must cost no more than reading them.
#pragma once

#include <cstdint>
#include <span>

namespace starling {

// The index of the first element that is NaN or infinite; -1 when all are finite. One pass at the speed of memory.
int64_t first_not_finite(std::span<const float> values);

}  // namespace starling
