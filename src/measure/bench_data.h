// Measures how fast text becomes training data, and in how much memory, compared with SentencePiece alone, and how much a vocabulary
// changes with the size of its sample. Unlike the other benchmarks, these write files, because writing is part of what they measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/task_progress.h"

namespace starling {

struct BenchDataOptions {
  std::string output;  // directory: train.source, train.target, vocab.spm, data
  int64_t pairs = 1'000'000;
  int64_t vocabulary = 32000;
  int threads = 0;  // 0: all cores that this process may use
  uint64_t seed = 1;
};

struct BenchDataResult {
  int64_t pairs = 0, bytes = 0;    // of the text, both sides
  double make_seconds = 0;         // 0: the text existed already
  double read_lines = 0;           // lines/s of one thread that only reads and checks
  double read_lines_together = 0;  // the same of all threads, over both files
  double vocabulary_seconds = 0;   // 0: the vocabulary existed already
  double encode_lines = 0;         // lines/s of SentencePiece alone on one thread, from memory
  int64_t kept_pairs = 0;          // pairs reused from an interrupted preparation
  double prepare_seconds = 0;      // checking, tokenising and storing, on all threads
  int threads = 1;
  double verify_seconds = 0;  // opening the finished store
  int64_t store_bytes = 0;
  int64_t peak_bytes = 0, peak_child_bytes = 0;  // resident memory of this process and of the vocabulary's training
};

/// Creates what is missing in `output` and measures. A finished store is built again; an unfinished one is continued.
BenchDataResult bench_data(const BenchDataOptions& options, const Say& say);

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
