// Finds NaN and infinity. Weights are checked when they are loaded, so the check must cost no more than reading them.
#pragma once

#include <cstdint>
#include <span>

namespace starling {

// Returns the index of the first element that is NaN or infinite, -1 if all are finite. One pass at memory speed.
int64_t first_not_finite(std::span<const float> values);

}  // namespace starling
