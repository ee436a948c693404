// An array of numbers in a file of another program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace starling {

struct ForeignArray {
  std::string name;
  std::string type;  // kind and bytes of an element, as NumPy names them: "f4", "f2", "i1"; or "q8": 8-bit integers times `unit`
  std::vector<int64_t> shape;
  std::string bytes;  // row-major, little-endian
  float unit = 0;
};

}  // namespace starling
