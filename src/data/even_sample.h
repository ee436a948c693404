// Lines of a text that are taken to learn from, spread evenly over it.
#pragma once

#include <cstdint>

namespace starling {

struct EvenSample {
  int64_t taken = 0, all = 1;  // how many lines, of how many
  // Lines count from 0.
  bool takes(int64_t line) const { return (line + 1) * taken / all != line * taken / all; }
  int64_t number(int64_t line) const { return line * taken / all; }  // of a line that is taken, among those
};

}  // namespace starling
