// An array of numbers in a file of another program.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

// Bytes that lie in a file, whose content must outlive them, or that were computed.
class ArrayBytes : public std::string_view {
 public:
  ArrayBytes() = default;
  ArrayBytes(std::string_view in_file) : std::string_view(in_file) {}
  ArrayBytes(const char* literal) : std::string_view(literal) {}
  ArrayBytes(std::string computed) {
    auto own = std::make_shared<const std::string>(std::move(computed));
    std::string_view::operator=(*own);
    own_ = std::move(own);
  }
  ArrayBytes(std::vector<float> computed) {
    auto own = std::make_shared<const std::vector<float>>(std::move(computed));
    std::string_view::operator=({reinterpret_cast<const char*>(own->data()), own->size() * sizeof(float)});
    own_ = std::move(own);
  }
  // The same bytes, which do not lie in a file.
  ArrayBytes kept() const { return own_ ? *this : ArrayBytes(std::string(*this)); }

 private:
  std::shared_ptr<const void> own_;
};

struct ForeignArray {
  std::string name;
  std::string type;  // kind and bytes of an element, as NumPy names them: "f4", "f2", "i1"; or "q8": 8-bit integers times `unit`
  std::vector<int64_t> shape;
  ArrayBytes bytes;  // row-major, little-endian
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
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
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
