#include "cleaning/near_block.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "cleaning/shingles.h"

namespace starling {

NearBlock::NearBlock(double threshold, size_t pairs, uint64_t shingles)
    : threshold_(threshold), pairs_(pairs), last_(kBands * pairs, kNone), next_(kBands * pairs, kNone) {
  shingles_.reserve(shingles);
}

void NearBlock::put(size_t place, const NearRecord& record, std::span<const uint32_t> shingles, uint32_t tried) {
  pairs_[place] = {shingles_.size(), record.number, record.source, record.target, tried, record.bands};
  shingles_.insert(shingles_.end(), shingles.begin(), shingles.end());
}

NearQuery NearBlock::query(size_t place) const {
  const Pair& pair = pairs_[place];
  const std::span all(shingles_);
  return {pair.bands, all.subspan(pair.at, pair.source), all.subspan(pair.at + pair.source, pair.target)};
}

void NearBlock::add(size_t place) {
  const auto added = static_cast<uint32_t>(place);
  for (size_t b = 0; b < kBands; ++b) {
    uint32_t& end = last_[chain(b, pairs_[place].bands[b])];
    next_[place * kBands + b] = end == kNone ? added : std::exchange(next_[end * kBands + b], added);
    end = added;
  }
}

std::optional<uint32_t> NearBlock::find(const NearQuery& query, uint32_t& tried) const {
  std::array<uint32_t, kBands> ends, at;  // of each chain: its last pair, and the next to look at
  for (size_t b = 0; b < kBands; ++b) ends[b] = last_[chain(b, query.bands[b])];
  const auto after = [&](size_t b, uint32_t place) { return place == ends[b] ? kNone : next_[place * kBands + b]; };
  const auto in_band = [&](size_t b, uint32_t place) {  // this pair, or the next that has the band
    while (place != kNone && pairs_[place].bands[b] != query.bands[b]) place = after(b, place);
    return place;
  };
  for (size_t b = 0; b < kBands; ++b) at[b] = ends[b] == kNone ? kNone : in_band(b, next_[ends[b] * kBands + b]);
  const auto have_most_bands = [&](const Bands& other) {
    return std::inner_product(other.begin(), other.end(), query.bands.begin(), int64_t{0}, std::plus<>(), std::equal_to<>()) >= kMostBands;
  };
  while (tried < kMostLooked) {
    const uint32_t first = *std::min_element(at.begin(), at.end());
    if (first == kNone) break;
    const NearQuery other = this->query(first);
    if ((tried < kMostTried || have_most_bands(other.bands)) && are_near(query.source, other.source, threshold_) &&
        are_near(query.target, other.target, threshold_))
      return pairs_[first].number;
    ++tried;
    for (size_t b = 0; b < kBands; ++b)
      if (at[b] == first) at[b] = in_band(b, after(b, first));
  }
  return std::nullopt;
}

}  // namespace starling
