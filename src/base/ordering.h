// Compares measurements that may be NaN. With plain <, NaN never loses a comparison and sorting is undefined behaviour.
#pragma once

#include <cmath>

namespace starling {

// Returns whether a is less than b, with NaN less than every number: a strict weak order, whose maximum is NaN only if all values are.
inline bool less_nan_lowest(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; }

}  // namespace starling
