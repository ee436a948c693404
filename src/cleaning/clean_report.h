// What a cleaning did: for people, as JSON, and as a page.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cleaning/clean_job.h"
#include "cleaning/judged_pairs.h"

namespace starling {

// A pair that broke a rule, and nothing else if there is one.
struct CleanExample {
  int64_t line = 0;
  std::string source, target;  // as judged, after repairs
  bool alone = false;
  std::string of;  // "corpus:line" of the pair that a duplicate equals or a near-copy is near; else ""
};

// A line that many pairs have on one side, in whatever case and punctuation.
struct FrequentLine {
  uint32_t number = 0;  // of the first pair that has it, of all corpora
  uint32_t pairs = 0;
  std::string text;
};

struct SampledPair : JudgedPair {
  SampledPair(const JudgedPair& pair, const CopyKeys& keys) : JudgedPair(pair), keys(keys) {}
  CopyKeys keys;
  std::string of;  // as CleanExample's
};

struct CorpusCleaning {
  std::string name, kept_file, weights_file;       // files in the output directory; no weights: ""
  uint32_t first = 0;                              // number of its first pair, of all corpora
  int64_t pairs = 0, kept = 0, kept_words = 0;     // words: of targets, between spaces
  double usual_ratio = 1;                          // see PairKind
  RepairCounts repaired{};                         // sides
  std::array<int64_t, kRules> dropped{}, alone{};  // pairs that break a rule, and those that break it alone, by Rule
  std::array<std::vector<CleanExample>, kRules> examples;
  std::vector<SampledPair> sample;  // in order, with the beginnings of long texts
};

struct CleanReport {
  std::string facts;  // hash of facts_of() the job
  bool monolingual = false;
  std::vector<CorpusCleaning> corpora;
  std::vector<FrequentLine> frequent_sources, frequent_targets;
  double judging = 0, comparing = 0, writing = 0;  // s: repairs and rules, scores and copies, files
  int64_t pairs_judged_before = 0;                 // by a start that was ended
  bool under_way = false;                          // of the pairs that were judged since this start, not yet compared with others
};

inline constexpr size_t kShownBytes = 2000;  // of a side, in examples and samples

// Returns the beginning of a text of more than so many bytes, with an ellipsis.
std::string shortened(const std::string& utf8, size_t bytes);

// The report for people, and as JSON.
std::string clean_text(const CleanReport& report);
std::string clean_json(const CleanReport& report);
// A page of HTML without outside resources (page/index.html).
std::string clean_page(const CleanReport& report, const CleanJob& job);

}  // namespace starling
