#include <algorithm>
#include <cmath>

#include "backend/reference/reference.h"

namespace starling {

double sinusoid(int64_t position, int64_t column, int64_t width) {
  const int64_t half = width / 2, pair = column < half ? column : column - half;
  const double angle = position * std::exp(-std::log(10000.0) * pair / std::max<int64_t>(half - 1, 1));
  return column < half ? std::sin(angle) : column < 2 * half ? std::cos(angle) : 0;
}

}  // namespace starling
