// How fast and in how much memory text becomes training data, beside SentencePiece alone; and how much a vocabulary changes with the size
// of its sample. Unlike the other benchmarks these write files, because that is what is measured.
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
  double make_seconds = 0;         // 0: it was there
  double read_lines = 0;           // lines a second of one thread: reading and checking alone
  double read_lines_together = 0;  // of all threads, over both files
  double vocabulary_seconds = 0;   // 0: it was there
  double encode_lines = 0;         // lines a second of SentencePiece alone on one thread, from memory
  int64_t kept_pairs = 0;          // pairs of an interrupted preparation that were used again
  double prepare_seconds = 0;      // checking, tokenising and storing, on all threads
  int threads = 1;
  double verify_seconds = 0;  // opening the finished store
  int64_t store_bytes = 0;
  int64_t peak_bytes = 0, peak_child_bytes = 0;  // resident; of this process, of the vocabulary's training
};

/// Makes what is missing in `output` and measures; a finished store is made again, an unfinished one is continued.
BenchDataResult bench_data(const BenchDataOptions& options, const Say& say);

struct BenchVocabularyOptions {
  std::string source, target;                                             // text
  std::vector<int64_t> lines{20'000, 50'000, 100'000, 200'000, 400'000};  // different lines of each sample, ascending
  int64_t vocabulary = 32000;
  std::string type = "unigram";
  uint64_t seed = 1;
};

struct SampleRow {
  int64_t sampled = 0, sampled_bytes = 0;
  double seconds = 0;
  int64_t peak_child_bytes = 0;  // the largest so far
  int64_t pieces = 0;
  double shared = 0;           // share of the pieces that the last row's vocabulary has too
  double shared_use = 0;       // the same, weighted by how often a piece is used
  double tokens_per_line = 0;  // on the first 20000 lines of each file
};

/// Trains a vocabulary on samples of growing size, in a temporary directory; the last row is what the others are compared with.
std::vector<SampleRow> bench_vocabulary(const BenchVocabularyOptions& options, const Say& say);

}  // namespace starling
