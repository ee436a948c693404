// Finds copies among all judged pairs within a given memory: a table of the keys of as many pairs as fit, and a pass over the records of
// all pairs for each table. Of n keys about n * n / 2^65 are taken for others: 0.0003 in 100 million.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cleaning/clean_job.h"
#include "cleaning/judged_pairs.h"

namespace starling {

using CopyKey = uint64_t CopyKeys::*;

// Returns by which key the pairs of a job are copies: with clean.copies targets by the target, else, and in one language, by the pair.
CopyKey key_of_copies(const CleanJob& job);

class CopySearch {
 public:
  // table_bytes: for the table; at least 1 MiB is taken.
  CopySearch(const Segments& segments, uint64_t table_bytes);

  // Marks the pairs without a mark whose score is below the limit.
  void mark_scores_below(float limit);
  // Marks, of the pairs without a mark that have the same key, all but the one with the best score (of several the first) as its
  // duplicates.
  void mark_duplicates(CopyKey key);
  // Marks, of the pairs without a mark that have the same key, those after the first `most`.
  void mark_frequent(CopyKey key, int64_t most);
  // Returns the score that the best pairs have whose words are at least this share of the words of all pairs without a mark, pairs without
  // a score aside; nothing if no pair has one.
  std::optional<float> score_of_best(double share) const;
  std::optional<float> score_of_best_words(uint64_t words) const;
  // Returns the most frequent keys of all records as the number of the first pair that has it and how many have it, the most frequent
  // first; at least two have it.
  std::vector<std::pair<uint32_t, uint32_t>> most_frequent(CopyKey key, size_t count) const;

 private:
  class Table;
  uint64_t tables() const;  // how many are needed for all keys
  template <class Visit>
  void for_each(const Visit& visit) const;  // visit(segment, records, marks)
  template <class Mark>
  void mark_each(const Mark& mark) const;  // mark(record) returns the rule and the first pair; 0: none
  template <class Weight>
  std::optional<float> limit_of(const Weight& weight, double sum) const;

  const Segments& segments_;
  const uint64_t places_;  // of the table
};

}  // namespace starling
