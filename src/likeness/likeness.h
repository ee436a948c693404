// How much more like one text a line is than like another, by trigram models of both (Moore and Lewis 2010): the difference of its mean
// log-probabilities a word, nats. Pairs have the sum of both sides' (Axelrod, He and Gao 2011). The text itself has two models, of
// different lines, so that no line is scored by a model that was trained on it.
#pragma once

#include <functional>

#include "alignment/linked_text.h"
#include "base/task_progress.h"
#include "data/corpus.h"

namespace starling {

struct LikenessJob {
  CorpusFiles text, like;     // a source alone, or pairs
  bool one_language = false;  // both have a source alone
  AlignedParts parts = AlignedParts::words;
  const Vocabulary *source_vocabulary = nullptr, *target_vocabulary = nullptr;  // for pieces
  int64_t sample = 200000;                                                      // lines that a model is trained on, spread evenly
  int threads = 1;
};

struct LikenessCounts {
  int64_t lines = 0, sampled = 0;  // of the text; that each model is trained on
};

// Calls `take` with the score of each line or pair of the text, in order. The result does not depend on the number of threads. Throws what
// PairReader does, and ConfigError for a text without lines.
LikenessCounts score_likeness(const LikenessJob& job, const TaskScreen& screen, const std::function<void(double)>& take);

}  // namespace starling
