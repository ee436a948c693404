// Counts of pairs, examples and a sample of judged pairs, for a report.
#pragma once

#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "cleaning/clean_report.h"

namespace starling {

class Tally {
 public:
  // Of the corpora that the report has, which must outlive it.
  explicit Tally(CleanReport& report);
  // Takes the pair of the next number; `of`: as CleanExample's.
  void take(const JudgedPair& pair, const std::string& of);
  // Writes the samples so far into the report.
  void add_samples() const;

 private:
  // A sample of a corpus: the pairs whose numbers have the lowest hashes, so it does not depend on chance.
  class Sample {
   public:
    explicit Sample(size_t size) : size_(size) {}
    void offer(uint32_t number, const JudgedPair& pair, const std::string& of);
    std::vector<SampledPair> in_order() const;

   private:
    size_t size_;
    std::priority_queue<uint64_t> highest_;
    std::map<uint64_t, std::pair<uint32_t, SampledPair>> chosen_;  // by hash
  };

  CleanReport& report_;
  std::vector<Sample> samples_;
  uint32_t number_ = 0;  // of the next pair
};

}  // namespace starling
