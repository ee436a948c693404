// Pairs that stay, in memory, to compare others with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cleaning/near_records.h"

namespace starling {

// A pair to look for.
struct NearQuery {
  const Bands& bands;
  std::span<const uint32_t> source, target;
};

class NearBlock {
  struct Pair {
    uint64_t at = 0;  // of its shingles
    uint32_t number = 0, source = 0, target = 0, tried = 0;
    Bands bands{};
  };

 public:
  static constexpr uint64_t kPairBytes = sizeof(Pair) + 2 * kBands * sizeof(uint32_t);  // of memory for a pair, its shingles aside

  // For so many pairs with so many shingles of both sides in all.
  NearBlock(double threshold, size_t pairs, uint64_t shingles);
  // Puts a pair at a place, from 0, with its shingles of both sides. It is not found yet. tried: see find.
  void put(size_t place, const NearRecord& record, std::span<const uint32_t> shingles, uint32_t tried);
  size_t size() const { return pairs_.size(); }
  uint32_t number(size_t place) const { return pairs_[place].number; }
  uint32_t tried(size_t place) const { return pairs_[place].tried; }
  NearQuery query(size_t place) const;
  // Lets the pair at a place be found, which must be behind those that were added before.
  void add(size_t place);
  // Returns the number of the first pair that was added and is near. tried: pairs that were not near enough, of earlier blocks too; it
  // grows, to kMostLooked at most. After kMostTried, only pairs that have most bands in common are compared.
  std::optional<uint32_t> find(const NearQuery& query, uint32_t& tried) const;

 private:
  static constexpr uint32_t kMostTried = 500, kMostLooked = 5000, kNone = 0xFFFFFFFF;
  static constexpr int64_t kMostBands = kBands / 2;
  // Pairs are in a chain for each band and some of its hashes. Returns the chain's number.
  size_t chain(size_t band, uint32_t hash) const { return band * pairs_.size() + (uint64_t{hash} * pairs_.size() >> 32); }

  const double threshold_;
  std::vector<Pair> pairs_;
  std::vector<uint32_t> shingles_;
  std::vector<uint32_t> last_;  // pair of each chain; kNone: it is empty
  std::vector<uint32_t> next_;  // of each pair and band: the next of its chain; after the last comes the first
};

}  // namespace starling
