// Host arrays that ops take as arguments: tokens, positions, offsets, row weights. The host plans with them. Where a backend's memory is
// not the host's, its ops read a copy there, which is uploaded once for all ops that take the same array.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace starling {

// A span that owns its host elements and knows their uploaded copy. A handle: copies share both. T is int32_t, uint32_t (uploaded as i32),
// float or double.
template <class T>
class HostDeviceArray : public std::span<const T> {
 public:
  HostDeviceArray() = default;
  // For ops that work in host memory.
  HostDeviceArray(std::vector<T> numbers) : HostDeviceArray(std::move(numbers), host_memory()) {}  // NOLINT(google-explicit-constructor)
  // Uploads a copy into storage of its own.
  HostDeviceArray(std::vector<T> numbers, Memory& memory)
      : HostDeviceArray(std::move(numbers), memory, [&](const Shape& shape, DType type) { return Tensor(shape, type, memory); }) {}
  // Uploads a copy into an arena.
  HostDeviceArray(std::vector<T> numbers, Arena& arena)
      : HostDeviceArray(std::move(numbers), arena.memory(), [&](const Shape& shape, DType type) { return arena.allocate(shape, type); }) {}

  // Wraps the elements of another owner, who must keep them in host memory as long as this is used.
  static HostDeviceArray lent(std::span<const T> numbers) {
    HostDeviceArray array;
    static_cast<std::span<const T>&>(array) = numbers;
    return array;
  }

  // The uploaded copy [n]; empty if the backend works in host memory.
  Tensor there() const {
    if (!numbers_ || !numbers_->there) return {};
    const int64_t begin = this->data() - numbers_->here.data();
    return numbers_->there.rows(begin, begin + static_cast<int64_t>(this->size()));
  }
  // Elements [begin, begin + n), which share the upload.
  HostDeviceArray part(int64_t begin, int64_t n) const {
    HostDeviceArray part = *this;
    static_cast<std::span<const T>&>(part) = this->subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
    return part;
  }

 private:
  struct Numbers {
    std::vector<T> here;
    Tensor there;
  };
  template <class Allocate>
  HostDeviceArray(std::vector<T> numbers, Memory& memory, Allocate allocate) {
    if (numbers.empty()) return;
    const auto own = std::make_shared<Numbers>(Numbers{std::move(numbers), {}});
    static_cast<std::span<const T>&>(*this) = own->here;
    if (!memory.host()) {
      own->there =
          allocate({static_cast<int64_t>(own->here.size())}, dtype_of<std::conditional_t<std::is_same_v<T, uint32_t>, int32_t, T>>());
      own->there.upload(std::as_bytes(static_cast<std::span<const T>>(*this)));
    }
    numbers_ = own;
  }
  std::shared_ptr<const Numbers> numbers_;
};

using Ints = HostDeviceArray<int32_t>;

}  // namespace starling
