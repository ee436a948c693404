// Aligns the words of a text in files: trains in both directions on a sample of it, then aligns all of it, in order.
#pragma once

#include <functional>
#include <string>

#include "alignment/aligner.h"
#include "alignment/linked_text.h"
#include "alignment/symmetrise.h"
#include "base/task_progress.h"
#include "data/corpus.h"

namespace starling {

struct AlignJob {
  CorpusFiles text;
  AlignedParts parts = AlignedParts::words;
  const Vocabulary *source_vocabulary = nullptr, *target_vocabulary = nullptr;  // for pieces
  AlignerOptions aligner;
  Symmetrisation symmetrisation = Symmetrisation::grow_diag_final_and;
  int64_t sample = 2000000;  // pairs to train on, spread evenly
  std::string load, save;    // lexicons: one to align by, in place of training, and one to write; empty: none
};

struct AlignedCounts {
  int64_t pairs = 0, sampled = 0, links = 0;
  int64_t too_long = 0;  // pairs: they have no links, and nan for a score
};

// Calls `take` for each pair in order with its links, and the mean of both directions of the log-probability of a word, nats: how parallel
// it is. The result does not depend on the number of threads. Throws what PairReader and
// read_lexicon() do, and ConfigError for a text without pairs.
AlignedCounts align_files(const AlignJob& job, const TaskScreen& screen, const Say& say,
                          const std::function<void(const Links& links, double log_probability)>& take);

}  // namespace starling
