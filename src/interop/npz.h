// Reads NumPy's archives of arrays, .npz: a zip of .npy files (NEP 1), as Marian writes its models.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace starling {

struct NpyArray {
  std::string name;
  std::string type;  // "f4", "f2", "i1", ...: kind and bytes of an element
  std::vector<int64_t> shape;
  std::string bytes;  // row-major, little-endian
};

// Throws DataError, beginning with `where`, for anything else.
std::vector<NpyArray> read_npz(std::span<const std::byte> bytes, const std::string& where);
NpyArray read_npy(std::string content, const std::string& where);

}  // namespace starling
