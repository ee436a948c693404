// Which keys were seen, by 64 bits of their hash, and in which line first: an open-addressing table of 12 bytes a place. Of n keys, about
// n * n / 2^65 are taken for others: 0.0003 in 100 million.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace starling {

class SeenKeys {
 public:
  // Returns the line in which the key was first seen, or nothing, and then remembers this line.
  std::optional<uint32_t> add(uint64_t hash, uint32_t line) {
    if (4 * (size_ + 1) > 3 * places_.size()) grow();
    Place& place = places_[place_of(hash == 0 ? 1 : hash)];
    if (place.used()) return place.line;
    place = Place(hash == 0 ? 1 : hash, line);
    ++size_;
    return std::nullopt;
  }
  bool has(uint64_t hash) const { return size_ > 0 && places_[place_of(hash == 0 ? 1 : hash)].used(); }
  size_t size() const { return size_; }

 private:
  struct Place {
    Place() = default;
    Place(uint64_t hash, uint32_t number) : low(static_cast<uint32_t>(hash)), high(static_cast<uint32_t>(hash >> 32)), line(number) {}
    uint32_t low = 0, high = 0, line = 0;
    uint64_t hash() const { return uint64_t{high} << 32 | low; }
    bool used() const { return (low | high) != 0; }
  };
  size_t place_of(uint64_t hash) const {
    size_t at = hash & (places_.size() - 1);
    while (places_[at].used() && places_[at].hash() != hash) at = (at + 1) & (places_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Place> old(places_.empty() ? 1024 : 2 * places_.size());
    old.swap(places_);
    for (const Place& place : old)
      if (place.used()) places_[place_of(place.hash())] = place;
  }
  std::vector<Place> places_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace starling
