// An array of numbers in a file of another program.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct ForeignArray {
  std::string name;
  std::string type;  // kind and bytes of an element, as NumPy names them: "f4", "f2", "i1"; or "q8": 8-bit integers times `unit`
  std::vector<int64_t> shape;
  std::string bytes;  // row-major, little-endian
  float unit = 0;
};

// The bytes of numbers, and the numbers of bytes.
template <class T>
std::string element_bytes(std::span<const T> elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()), elements.size_bytes());
}
template <class T>
std::string element_bytes(const std::vector<T>& elements) {
  return element_bytes(std::span<const T>(elements));
}
template <class T>
std::vector<T> elements_of(std::string_view bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

// The elements of a type, "f4", "f2", "b2" (bf16), "i1", "i2" or "i4", as floats.
std::vector<float> float_values(std::string_view type, std::string_view bytes);

// Whether a table [rows, width] holds Starling's own signals of positions, the first row that of position `first`.
bool are_sinusoids(const std::vector<float>& table, int64_t width, int64_t first);

// The transpose of a matrix [rows, columns].
template <class T>
std::vector<T> transposed(const std::vector<T>& matrix, int64_t rows, int64_t columns) {
  std::vector<T> other(matrix.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) other[static_cast<size_t>(c * rows + r)] = matrix[static_cast<size_t>(r * columns + c)];
  return other;
}

}  // namespace starling
