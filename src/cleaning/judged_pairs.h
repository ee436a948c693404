// Judged pairs on disk, between the passes of a cleaning: in segments, so that a cleaning that was killed goes on after the last whole one.
// A segment is a file of pairs, a file of the records by which copies are found, two of those for near-copies, if these are asked for, and
// a file of marks, once there are any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "cleaning/held_out.h"
#include "cleaning/mapped_values.h"
#include "cleaning/near_records.h"
#include "cleaning/repair.h"
#include "cleaning/rules.h"
#include "data/zstd_writer.h"

namespace starling {

struct JudgedPair {
  uint32_t corpus = 0, line = 0;  // line: from 1
  float weight = 1;
  float score = 0;  // infinity: there is none
  RuleSet broken;
  uint32_t repairs = 0;  // bits by Repair: those of the source, then those of the target
  PairMeasures measures;
  std::string source, target;  // repaired; text of one language has no target
  uint32_t words() const;      // of the target, or of the only side, between spaces
};

// Of a pair that broke no rule by itself.
struct CopyRecord {
  uint32_t number = 0;  // of the pair, of all corpora, from 0
  uint32_t words = 0;   // of the target
  float score = 0;      // as JudgedPair's
  uint32_t unused = 0;  // so that each byte that is written has a value
  CopyKeys keys;
};

// What the comparison with all other pairs found, for each pair of a segment.
struct SegmentMarks {
  std::vector<uint8_t> rules;   // Rule::score, duplicate, near_copy or frequent; 0 (Rule::empty): none
  std::vector<uint32_t> first;  // number of the pair that a duplicate or a near-copy is one of; without a mark, what NearBlock tried
  bool marked(size_t i) const { return rules[i] != 0; }
};

// The segments in a directory. All throw IoError.
class Segments {
 public:
  // Finds the whole segments that are there already. Each but the last has `segment_pairs`.
  Segments(FileSystem& files, std::string directory, uint32_t segment_pairs = 1u << 16);
  size_t size() const { return pairs_.size(); }
  uint32_t first(size_t segment) const { return static_cast<uint32_t>(segment) * segment_pairs_; }  // number of its first pair
  uint32_t all_pairs() const { return pairs_.empty() ? 0 : first(size() - 1) + pairs_.back(); }
  uint64_t records() const;  // of all segments
  void add(uint32_t pairs) { pairs_.push_back(pairs); }
  uint32_t segment_pairs() const { return segment_pairs_; }
  std::string path(size_t segment, const char* what) const;

  // The records of a segment, valid as long as the object; an empty file has none.
  using Records = MappedValues<CopyRecord>;
  Records read_records(size_t segment) const { return {files_, path(segment, "records")}; }
  SegmentMarks marks(size_t segment) const;
  void save_marks(size_t segment, const SegmentMarks& marks) const;
  void forget_marks() const;  // of a start that was ended
  NearRecords near(size_t segment) const { return {files_, path(segment, "")}; }

 private:
  FileSystem& files_;
  const std::string directory_;
  const uint32_t segment_pairs_;
  std::vector<uint32_t> pairs_;  // of each segment
};

class JudgedWriter {
 public:
  // near_copies: also what these are found by.
  JudgedWriter(FileSystem& files, Segments& segments, bool near_copies = false);
  ~JudgedWriter();
  // Adds the next pair, with its keys, and its shingles, if it broke no rule.
  void add(const JudgedPair& pair, const CopyKeys& keys, const PairShingles& shingles = {});
  void close();  // completes the last segment

 private:
  struct Part;
  void complete();
  FileSystem& files_;
  Segments& segments_;
  const bool near_copies_;
  std::unique_ptr<Part> part_;
};

class JudgedReader {
 public:
  JudgedReader(const Segments& segments, size_t segment);
  ~JudgedReader();
  bool next(JudgedPair& pair);

 private:
  struct Input;
  std::unique_ptr<Input> input_;
};

}  // namespace starling
