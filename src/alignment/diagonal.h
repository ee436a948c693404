// The prior of fast_align (Dyer, Chahuneau and Smith 2013): a target word j of m, from 1, is linked to a source word i of n with a
// probability in proportion to exp(tension * h), h = -|i/n - j/m|.
#pragma once

#include <cstdint>

namespace starling {

// h of two positions, both from 1, except where `j` is said to be from 0.
double diagonal_feature(int64_t i, int64_t j, int64_t n, int64_t m);
// The sum over i of exp(tension * h), in closed form.
double diagonal_sum(int64_t j, int64_t n, int64_t m, double tension);
// The derivative of its logarithm by the tension: the expected h. swapped: with the sum for m and n exchanged, as fast_align divides.
double diagonal_expectation(int64_t j, int64_t n, int64_t m, double tension, bool swapped);

}  // namespace starling
