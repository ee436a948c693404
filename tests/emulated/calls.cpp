// Counts of what a process asks of the emulated cards.
#include "tests/emulated/emulator.h"

namespace emulated_cuda {

Calls& counted() {
  static Calls one;
  return one;
}

Calls calls() {
  const std::lock_guard lock(runtime_mutex());
  return counted();
}

void count_group() {
  const std::lock_guard lock(runtime_mutex());
  ++counted().groups;
}

void count_product(int64_t rows) {
  const std::lock_guard lock(runtime_mutex());
  ++counted().products;
  if (rows % 16 != 0) ++counted().uneven_products;
}

}  // namespace emulated_cuda
