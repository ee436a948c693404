#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

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

Tensor::Tensor(const Shape& shape, DType dtype, Memory& memory) : shape_(shape), dtype_(dtype) {
  storage_ = std::make_shared<Storage>(shape.count() * size_of(dtype), memory);
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

int64_t Tensor::resident_bytes() const {
  if (!data_) return 0;
  return memory().host() ? starling::resident_bytes(data_, bytes()) : bytes();
}

void Tensor::zero() const { memory().zero(data_, bytes()); }

void Tensor::copy_from(const Tensor& x) const {
  CHECK(x.dtype_ == dtype_ && x.count() == count(), "copy of {} {} to {} {}", name_of(x.dtype_), x.shape_.text(), name_of(dtype_),
        shape_.text());
  Memory &to = memory(), &from = x.memory();
  if (&to == &from) return to.copy(data_, x.data_, bytes());
  CHECK(to.host() || from.host(), "a copy of {} between two memories that are not the host's", shape_.text());
  if (from.host())
    to.upload(data_, x.data_, bytes());
  else
    from.download(data_, x.data_, bytes());
}

Tensor Tensor::clone() const {
  Tensor copy(shape_, dtype_, memory());
  copy.copy_from(*this);
  return copy;
}

void Tensor::upload(std::span<const std::byte> all) const {
  CHECK(static_cast<int64_t>(all.size()) == bytes(), "{} bytes for {} {}", all.size(), name_of(dtype_), shape_.text());
  memory().upload(data_, all.data(), bytes());
}

std::vector<std::byte> Tensor::download() const {
  std::vector<std::byte> all(static_cast<size_t>(bytes()));
  memory().download(all.data(), data_, bytes());
  return all;
}

Tensor Tensor::on_host() const {
  if (memory().host()) return *this;
  Tensor here(shape_, dtype_);
  here.copy_from(*this);
  return here;
}

std::span<std::byte> Tensor::host_bytes() const {
  CHECK(memory().host(), "the host asks for the bytes of a tensor {} that lies elsewhere", shape_.text());
  return {data_, static_cast<size_t>(bytes())};
}

void Tensor::swap_elements(const Tensor& x) const {
  CHECK(x.dtype_ == dtype_ && x.count() == count() && &x.memory() == &memory(), "{} {} cannot be swapped with {} {}", name_of(dtype_),
        shape_.text(), name_of(x.dtype_), x.shape_.text());
  // In pieces, so that no second copy of a model is made.
  constexpr int64_t kPiece = int64_t{1} << 18;
  const Tensor spare({std::min(kPiece, count())}, dtype_, memory());
  for (int64_t at = 0; at < count(); at += kPiece) {
    const Shape piece{std::min(kPiece, count() - at)};
    const Tensor a = slice(at, piece), b = x.slice(at, piece), c = spare.slice(0, piece);
    c.copy_from(a);
    a.copy_from(b);
    b.copy_from(c);
  }
}

std::vector<double> Tensor::to_doubles() const {
  if (!memory().host()) return on_host().to_doubles();
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
  if (!memory().host()) {
    const Tensor here(shape_, dtype_);
    here.from_doubles(values);
    return copy_from(here);
  }
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
  while (at_.chunk < chunks_.size() && at_.offset + bytes > chunks_[at_.chunk]->bytes()) {
    used_.push_back(at_.offset);
    used_before_ += at_.offset;
    at_ = {at_.chunk + 1, 0};
  }
  if (at_.chunk == chunks_.size()) add_chunk(std::max({chunk_bytes, bytes, capacity() / 8}));
  const auto& storage = chunks_[at_.chunk];
  std::byte* data = storage->data() ? storage->data() + at_.offset : nullptr;
  at_.offset += bytes;
  most_used_ = std::max(most_used_, used_before_ + at_.offset);
  return Tensor(storage, data, shape, dtype);
}

void Arena::add_chunk(int64_t bytes) {
  chunks_.push_back(std::make_shared<Storage>(bytes, *memory_));
  memory_->discard(chunks_.back()->data(), bytes);  // what lies in an arena is not zeroed
}

void Arena::release(Mark m) {
  for (size_t c = m.chunk; c < chunks_.size() && c <= at_.chunk; ++c) {
    const int64_t begin = c == m.chunk ? m.offset : 0, end = c == at_.chunk ? at_.offset : chunks_[c]->bytes();
    if (chunks_[c]->data() && begin < end) memory_->discard(chunks_[c]->data() + begin, end - begin);
  }
  at_ = m;
  used_.resize(m.chunk);
  used_before_ = std::accumulate(used_.begin(), used_.end(), int64_t{0});
  if (m.chunk != 0 || m.offset != 0 || chunks_.size() < 2) return;
  chunks_.clear();
  add_chunk(most_used_);  // less than there was: no space is lost between chunks any more
}

int64_t Arena::capacity() const {
  int64_t total = 0;
  for (const auto& c : chunks_) total += c->bytes();
  return total;
}

}  // namespace starling
