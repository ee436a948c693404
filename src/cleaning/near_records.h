// What near-copies are found by, on disk beside a segment's judged pairs: records of one size, and the shingles that they point to.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "cleaning/mapped_values.h"
#include "cleaning/min_hash.h"

namespace starling {

// Of one pair. A side that is not compared has no shingles; a pair without any is not compared at all.
struct PairShingles {
  std::vector<uint32_t> source, target;
  Bands bands{};
  bool any() const { return !source.empty() || !target.empty(); }
};

struct NearRecord {
  uint32_t number = 0;              // of the pair, of all corpora, from 0
  float score = 0;                  // as JudgedPair's
  uint32_t at = 0;                  // of its shingles in their file, in units of four bytes
  uint32_t source = 0, target = 0;  // how many shingles the sides have: first the source's, then the target's
  Bands bands{};
  uint32_t shingles() const { return source + target; }
};

class NearWriter {
 public:
  // base: path without the last part of the names.
  NearWriter(FileSystem& files, const std::string& base);
  void add(uint32_t number, float score, const PairShingles& pair);
  void flush();
  void close();

 private:
  std::unique_ptr<OutputFile> records_, shingles_;
  std::string record_bytes_, shingle_bytes_;  // not yet written
  uint32_t at_ = 0;
};

// Those of a segment, mapped: valid as long as the object.
class NearRecords {
 public:
  NearRecords(FileSystem& files, const std::string& base);
  std::span<const NearRecord> records() const { return records_.span(); }
  // Returns the shingles of both sides.
  std::span<const uint32_t> shingles(const NearRecord& record) const { return shingles_.span().subspan(record.at, record.shingles()); }

 private:
  MappedValues<NearRecord> records_;
  MappedValues<uint32_t> shingles_;
};

}  // namespace starling
