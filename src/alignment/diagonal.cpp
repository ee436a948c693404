#include "alignment/diagonal.h"

#include <cmath>

namespace starling {
namespace {

// The source positions on the two sides of the diagonal: those up to `below`, and the others.
struct Split {
  Split(int64_t j, int64_t n, int64_t m) : below(j * n / m), above(n - below) {}
  int64_t below, above;  // how many
};

// The sum over l from 0 to count - 1 of (a + l * d) * g * q^l.
double weighted_series(double a, double g, double q, double d, int64_t count) {
  const auto n = static_cast<double>(count);
  const double last = g * std::pow(q, n);
  return ((a + d * (n - 1)) * last - a * g) / (q - 1) - d * (last - g * q) / ((q - 1) * (q - 1));
}

}  // namespace

double diagonal_feature(int64_t i, int64_t j, int64_t n, int64_t m) {
  return -std::abs(static_cast<double>(j) / static_cast<double>(m) - static_cast<double>(i) / static_cast<double>(n));
}

double diagonal_sum(int64_t j, int64_t n, int64_t m, double tension) {
  const Split split(j, n, m);
  const double q = std::exp(-tension / static_cast<double>(n));
  const auto series = [&](int64_t first, int64_t count) {
    // A count below 0, with n and m exchanged, is one without end: in fast_align it is unsigned.
    const double rest = count > 0 ? std::pow(q, static_cast<double>(count)) : 0;
    return count != 0 ? std::exp(tension * diagonal_feature(first, j, n, m)) * (1 - rest) / (1 - q) : 0;
  };
  return series(split.below + 1, split.above) + series(split.below, split.below);
}

double diagonal_expectation(int64_t j, int64_t n, int64_t m, double tension, bool swapped) {
  const Split split(j, n, m);
  const double q = std::exp(-tension / static_cast<double>(n)), d = -1 / static_cast<double>(n);
  const auto series = [&](int64_t first, int64_t count) {
    const double h = diagonal_feature(first, j, n, m);
    return count > 0 ? weighted_series(h, std::exp(tension * h), q, d, count) : 0;
  };
  const double sum = swapped ? diagonal_sum(j, m, n, tension) : diagonal_sum(j, n, m, tension);
  return (series(split.below + 1, split.above) + series(split.below, split.below)) / sum;
}

}  // namespace starling
