// Tests that run on several ranks at once: mpirun starts this program N times, every rank runs every test, and collectives in a test are
// called by all. The world is made once, in main.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "comm/world.h"

namespace starling {

World& test_world();
inline Communicator& test_comm() { return *test_world().comm; }

// Element i of rank r's tensor: whole numbers that every type holds exactly, as it does their sums.
inline double element(int rank, int64_t i) { return static_cast<double>((i * 7 + rank * 13 + i / 5 * rank) % 101 - 50); }

inline Tensor filled(int64_t count, DType type, const std::function<double(int64_t)>& value) {
  Tensor x({count}, type);
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value(i);
  x.from_doubles(values);
  return x;
}

// Compares elements [range) and reports the first that differs.
inline void expect_elements(const Tensor& x, Range range, const std::function<double(int64_t)>& value, const std::string& where) {
  const std::vector<double> got = x.to_doubles();
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (got[static_cast<size_t>(i)] == value(i)) continue;
    ADD_FAILURE() << where << ": element " << i << " of " << x.count() << " is " << got[static_cast<size_t>(i)] << ", not " << value(i);
    return;
  }
}

}  // namespace starling
