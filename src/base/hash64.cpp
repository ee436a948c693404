#include "base/hash64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace starling {
namespace {

constexpr uint64_t kIn = 0x9fb21c651e98df25u, kOut = 0xd6e8feb86659fd93u;  // odd, so multiplying loses nothing

uint64_t mixed(uint64_t h) {
  h = (h ^ (h >> 32)) * kOut;
  h = (h ^ (h >> 29)) * kIn;
  return h ^ (h >> 32);
}

}  // namespace

void Hash64::stripe(const std::byte* bytes) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    uint64_t word;
    std::memcpy(&word, bytes + 8 * i, sizeof word);
    lanes_[i] = std::rotl(lanes_[i] + word * kIn, 29) * kOut;
  }
}

void Hash64::update(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (rest_size_ > 0) {
    const size_t count = std::min(kStripe - rest_size_, bytes.size());
    std::copy_n(bytes.begin(), count, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += count;
    bytes = bytes.subspan(count);
    if (rest_size_ < kStripe) return;
    stripe(rest_.data());
    rest_size_ = 0;
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) stripe(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  rest_size_ = bytes.size();
}

uint64_t Hash64::digest() const {
  Hash64 last = *this;
  std::fill(last.rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_), last.rest_.end(), std::byte{});
  last.stripe(last.rest_.data());
  uint64_t h = size_;
  for (const uint64_t lane : last.lanes_) h = mixed(h ^ lane);
  return h;
}

uint64_t hash64(std::span<const std::byte> bytes) {
  Hash64 hash;
  hash.update(bytes);
  return hash.digest();
}

}  // namespace starling
