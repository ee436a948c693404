// `starling bench vocabulary`: measures how much a vocabulary changes with the size of its sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/task_progress.h"

namespace starling {

struct BenchVocabularyOptions {
  std::string source, target;                                             // text
  std::vector<int64_t> lines{20'000, 50'000, 100'000, 200'000, 400'000};  // distinct lines in each sample, ascending
  int64_t vocabulary = 32000;
  std::string type = "unigram";
  uint64_t seed = 1;
};

struct SampleRow {
  int64_t sampled = 0, sampled_bytes = 0;
  double seconds = 0;
  int64_t peak_child_bytes = 0;  // the largest so far
  int64_t pieces = 0;
  double shared = 0;           // share of the pieces that are also in the last row's vocabulary
  double shared_use = 0;       // the same, weighted by how often a piece is used
  double tokens_per_line = 0;  // measured on the first 20000 lines of each file
};

/// Trains vocabularies on samples of growing size, in a temporary directory. The last row is the reference for the others.
std::vector<SampleRow> bench_vocabulary(const BenchVocabularyOptions& options, const Say& say);

}  // namespace starling
