// The first pass of a cleaning: reads the corpora, repairs and measures each pair, and writes what it found into segments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/task_progress.h"
#include "cleaning/clean_job.h"
#include "cleaning/judged_pairs.h"
#include "cleaning/pair_measures.h"

namespace starling {

// What the pairs of each corpus have in common, with the usual ratio of lengths as it is in its first pairs.
std::vector<PairKind> pair_kinds(const CleanJob& job);

// The text of one corpus in order: pairs, or lines of one language.
class JudgedText {
 public:
  JudgedText(const CorpusFiles& corpus, bool monolingual);
  // Gets the next pair, as views valid until the next call; the target is empty in one language. Throws what PairReader does.
  bool next(std::string_view& source, std::string_view& target);
  float weight() const { return pairs_ ? pairs_->weight() : 1; }
  uint64_t bytes_read() const { return pairs_ ? pairs_->bytes_read() : lines_->bytes_read(); }
  int64_t line_number() const { return pairs_ ? pairs_->line_number() : lines_->line_number(); }

 private:
  std::optional<PairReader> pairs_;
  std::optional<LineReader> lines_;
};

// Judges the pairs that the segments do not have yet, and returns the number of each corpus's first pair. Throws what PairReader does, and
// IoError.
std::vector<uint32_t> judge_pairs(const CleanJob& job, const std::vector<PairKind>& kinds, FileSystem& files, Segments& segments,
                                  TaskProgress& progress);

}  // namespace starling
