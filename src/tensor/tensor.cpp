#include "tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace starling {

const char* name_of(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
  }
  return "?";
}

std::string Shape::text() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(dims_[i]);
  return s + "]";
}

// Large blocks come straight from the system: zero without being touched, and given back when they are freed.
constexpr int64_t kMapped = int64_t{1} << 20;

Storage::Storage(int64_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  if (bytes >= kMapped) {
    memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
    if (memory) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint: failure changes nothing but speed
  } else {
    const size_t rounded = std::max<size_t>(static_cast<size_t>(bytes + 63) / 64 * 64, 64);
    memory = std::aligned_alloc(64, rounded);
    if (memory) std::memset(memory, 0, rounded);
  }
  if (memory == nullptr)
    throw Error(
        fmt::format("out of memory: {} MiB were asked for; use smaller batches (--batch-size, --batch-tokens, train.micro-batch-tokens), "
                    "shorter sentences or a smaller model",
                    bytes >> 20));
  data_ = static_cast<std::byte*>(memory);
}

Storage::~Storage() {
  if (bytes_ >= kMapped)
    munmap(data_, static_cast<size_t>(bytes_));
  else
    std::free(data_);
}

Tensor::Tensor(const Shape& shape, DType dtype) : shape_(shape), dtype_(dtype) {
  storage_ = std::make_shared<Storage>(shape.count() * size_of(dtype));
  data_ = storage_->data();
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin <= end && end <= shape_[0], "rows [{}, {}) of {}", begin, end, shape_.text());
  const int64_t stride = shape_[0] == 0 ? 0 : count() / shape_[0];
  Shape shape;
  switch (shape_.rank()) {
    case 1:
      shape = Shape{end - begin};
      break;
    case 2:
      shape = Shape{end - begin, shape_[1]};
      break;
    case 3:
      shape = Shape{end - begin, shape_[1], shape_[2]};
      break;
    default:
      shape = Shape{end - begin, shape_[1], shape_[2], shape_[3]};
      break;
  }
  return Tensor(storage_, data_ ? data_ + begin * stride * size_of(dtype_) : nullptr, shape, dtype_);
}

Tensor Tensor::slice(int64_t begin, const Shape& shape) const {
  CHECK(begin >= 0 && begin + shape.count() <= count(), "slice at {} of shape {} from {}", begin, shape.text(), shape_.text());
  return Tensor(storage_, data_ ? data_ + begin * size_of(dtype_) : nullptr, shape, dtype_);
}

void Tensor::zero() const { std::memset(data_, 0, bytes()); }

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> out(count());
  for (int64_t i = 0; i < count(); ++i) {
    switch (dtype_) {
      case DType::f32:
        out[i] = reinterpret_cast<const float*>(data_)[i];
        break;
      case DType::f64:
        out[i] = reinterpret_cast<const double*>(data_)[i];
        break;
      case DType::bf16:
        out[i] = widen(reinterpret_cast<const bf16*>(data_)[i]);
        break;
      case DType::i32:
        out[i] = reinterpret_cast<const int32_t*>(data_)[i];
        break;
      case DType::i16:
        out[i] = reinterpret_cast<const int16_t*>(data_)[i];
        break;
      case DType::i8:
        out[i] = reinterpret_cast<const int8_t*>(data_)[i];
        break;
    }
  }
  return out;
}

void Tensor::from_doubles(std::span<const double> values) const {
  CHECK(static_cast<int64_t>(values.size()) == count(), "{} values for {}", values.size(), shape_.text());
  for (int64_t i = 0; i < count(); ++i) {
    switch (dtype_) {
      case DType::f32:
        reinterpret_cast<float*>(data_)[i] = static_cast<float>(values[i]);
        break;
      case DType::f64:
        reinterpret_cast<double*>(data_)[i] = values[i];
        break;
      case DType::bf16:
        reinterpret_cast<bf16*>(data_)[i] = round_to_bf16(static_cast<float>(values[i]));
        break;
      case DType::i32:
        reinterpret_cast<int32_t*>(data_)[i] = static_cast<int32_t>(values[i]);
        break;
      case DType::i16:
        reinterpret_cast<int16_t*>(data_)[i] = static_cast<int16_t>(values[i]);
        break;
      case DType::i8:
        reinterpret_cast<int8_t*>(data_)[i] = static_cast<int8_t>(values[i]);
        break;
    }
  }
}

Tensor Arena::allocate(const Shape& shape, DType dtype) {
  constexpr int64_t chunk_bytes = int64_t{8} << 20;
  const int64_t bytes = (shape.count() * size_of(dtype) + 127) / 64 * 64;  // one spare cache line: kernels may read past a row
  while (at_.chunk < chunks_.size() && at_.offset + bytes > chunks_[at_.chunk]->bytes()) at_ = {at_.chunk + 1, 0};
  if (at_.chunk == chunks_.size()) chunks_.push_back(std::make_shared<Storage>(std::max({chunk_bytes, bytes, capacity() / 8})));
  const auto& storage = chunks_[at_.chunk];
  std::byte* data = storage->data() + at_.offset;
  at_.offset += bytes;
  return Tensor(storage, data, shape, dtype);
}

void Arena::release(Mark m) {
  at_ = m;
  if (m.chunk != 0 || m.offset != 0 || chunks_.size() < 2) return;
  const int64_t total = capacity();
  chunks_.clear();
  chunks_.push_back(std::make_shared<Storage>(total));
}

int64_t Arena::capacity() const {
  int64_t total = 0;
  for (const auto& c : chunks_) total += c->bytes();
  return total;
}

}  // namespace starling
