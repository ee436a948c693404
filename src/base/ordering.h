// Comparing measurements that may be NaN. With < alone NaN wins by never losing, and sorting with it is undefined.
#pragma once

#include <cmath>

namespace starling {

// Whether a is less than b, NaN being less than every number: a strict weak order, in which the highest is NaN only if all are.
inline bool less_nan_lowest(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; }

}  // namespace starling
