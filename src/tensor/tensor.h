// Tensors: cheap handles on 64-byte aligned storage, with contiguous rows and at most four dimensions. Tensors share their storage, so
// views cost nothing. A tensor knows the memory that it lies in; data<T>() gives access to the elements of one in host memory and checks
// type and memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/memory.h"

namespace starling {

// Brain float: the upper half of an f32. Arithmetic happens in f32 after widening.
struct bf16 {
  uint16_t bits;
};

enum class DType : uint8_t { f32, f64, bf16, i32, i16, i8 };

inline int64_t size_of(DType t) {
  switch (t) {
    case DType::f64:
      return 8;
    case DType::bf16:
    case DType::i16:
      return 2;
    case DType::i8:
      return 1;
    default:
      return 4;
  }
}
const char* name_of(DType t);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    CHECK(dims.size() <= 4, "{} dimensions", dims.size());
    for (int64_t d : dims) dims_[rank_++] = d;
  }
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  bool operator==(const Shape& o) const { return rank_ == o.rank_ && dims_ == o.dims_; }
  std::string text() const;

 private:
  std::array<int64_t, 4> dims_{};
  int rank_ = 0;
};

// One aligned allocation, filled with zeros.
class Storage {
 public:
  explicit Storage(int64_t bytes, Memory& memory = host_memory()) : memory_(memory), data_(memory.allocate(bytes)), bytes_(bytes) {}
  ~Storage() { memory_.release(data_, bytes_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Memory& memory() const { return memory_; }

 private:
  Memory& memory_;
  std::byte* data_;
  int64_t bytes_;
};

class Tensor {
 public:
  Tensor() = default;
  // Allocates storage of its own, zeroed.
  Tensor(const Shape& shape, DType dtype, Memory& memory = host_memory());
  Tensor(std::shared_ptr<Storage> storage, std::byte* data, const Shape& shape, DType dtype)
      : storage_(std::move(storage)), data_(data), shape_(shape), dtype_(dtype) {}

  // False for an empty handle.
  explicit operator bool() const { return storage_ != nullptr; }
  // Must not be called on an empty handle.
  Memory& memory() const { return storage_->memory(); }
  // False for a tensor that has a size but no elements (meta_memory).
  bool has_elements() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t rows() const { return shape_[0]; }
  int64_t columns() const { return shape_.rank() < 2 ? 1 : shape_[1]; }
  int64_t count() const { return shape_.count(); }
  int64_t bytes() const { return count() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  // Bytes of the elements that are there: in the host's memory, pages that were touched, elsewhere all.
  int64_t resident_bytes() const;
  // The address in the tensor's memory; null without elements.
  std::byte* raw() const { return data_; }

  template <class T>
  T* data() const {
    CHECK(dtype_of<T>() == dtype_, "tensor is {}, asked for {}", name_of(dtype_), name_of(dtype_of<T>()));
    CHECK(!storage_ || storage_->memory().host(), "the host asks for the elements of a tensor {} that lies elsewhere", shape_.text());
    return reinterpret_cast<T*>(data_);
  }
  // The same elements under another shape of equal count.
  Tensor view(const Shape& shape) const {
    CHECK(shape.count() == count(), "view {} of {}", shape.text(), shape_.text());
    return Tensor(storage_, data_, shape, dtype_);
  }
  // Rows [begin, end) of the first dimension.
  Tensor rows(int64_t begin, int64_t end) const;
  // Elements [begin, begin + shape.count()) of the flat buffer.
  Tensor slice(int64_t begin, const Shape& shape) const;
  void zero() const;
  // Copies the elements of a tensor of the same type and count. If the two lie in different memories, one must be the host's.
  void copy_from(const Tensor& other) const;
  // Returns a copy with storage of its own in the same memory.
  Tensor clone() const;
  // Copies the elements from or to bytes in the host's byte order, for files.
  void upload(std::span<const std::byte> bytes) const;
  std::vector<std::byte> download() const;
  // Copies the elements to the host, into a span of the same count; waits for the ops that write them.
  template <class T>
  void read(std::span<T> to) const {
    CHECK(dtype_of<T>() == dtype_ && static_cast<int64_t>(to.size()) == count(), "{} {} read as {} {}", count(), name_of(dtype_), to.size(),
          name_of(dtype_of<T>()));
    memory().download(reinterpret_cast<std::byte*>(to.data()), data_, bytes());
  }
  // Returns this tensor if it lies in host memory, else a copy that does.
  Tensor on_host() const;
  // The elements of a tensor in host memory as bytes, in place.
  std::span<std::byte> host_bytes() const;
  // Whether both have the same first element.
  bool starts_with(const Tensor& other) const { return data_ && data_ == other.data_; }
  // Swaps the elements of two tensors of the same type and count in one memory.
  void swap_elements(const Tensor& other) const;
  // Copy to and from double, widening or rounding, for tests, files and initialisation.
  std::vector<double> to_doubles() const;
  void from_doubles(std::span<const double> values) const;

 private:
  std::shared_ptr<Storage> storage_;
  std::byte* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
};

// The elements of a small f64 tensor in the host's memory: sums, counts and flags that ranks exchange.
inline std::span<double> doubles_of(const Tensor& x) { return {x.data<double>(), static_cast<size_t>(x.count())}; }

inline float widen(bf16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}
// Rounds to nearest, ties to even; NaN stays NaN.
inline bf16 round_to_bf16(float f) {
  uint32_t bits;
  __builtin_memcpy(&bits, &f, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<uint16_t>((bits >> 16) | 0x40)};
  return bf16{static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// A stack allocator for the tensors of one step: allocating bumps a pointer, releasing goes back to a mark. Contents are not zeroed. Memory
// comes in chunks, which are merged into one when everything is released, so that after a few steps no space is lost between them.
class Arena {
 public:
  explicit Arena(Memory& memory) : memory_(&memory) {}
  Tensor allocate(const Shape& shape, DType dtype);
  struct Mark {
    size_t chunk = 0;
    int64_t offset = 0;
  };
  Mark mark() const { return at_; }
  // Releases the tensors allocated since the mark and tells their memory so (Memory::discard); Mark{} is the very beginning.
  void release(Mark m);
  int64_t capacity() const;
  // The most bytes that were in use at once, which is what a memory that commits pages on first touch has committed.
  int64_t most_used() const { return most_used_; }
  Memory& memory() const { return *memory_; }

 private:
  void add_chunk(int64_t bytes);
  Memory* memory_;
  std::vector<std::shared_ptr<Storage>> chunks_;
  Mark at_;
  std::vector<int64_t> used_;  // bytes of the chunks before at_.chunk; the rest of each is not touched
  int64_t used_before_ = 0, most_used_ = 0;
};

}  // namespace starling
