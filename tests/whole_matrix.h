// `make test` takes a part of what is random, repeated, or a product of variants; `make test-all` (STARLING_WHOLE_MATRIX=1) all of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace starling {

inline bool whole_matrix() { return std::getenv("STARLING_WHOLE_MATRIX") != nullptr; }

// How many of the cases: all in the whole matrix, else a part.
inline int of_cases(int all, int part) { return whole_matrix() ? all : part; }

// The cases: all in the whole matrix, else the first few. Those that tell the most come first.
template <class T>
std::vector<T> of_cases(std::initializer_list<T> all, size_t first) {
  return {all.begin(), whole_matrix() ? all.end() : all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size()))};
}

}  // namespace starling
