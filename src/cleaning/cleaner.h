// Cleans parallel text: repairs lines, drops pairs that break rules, and says what it did. docs/guides/cleaning.md
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/task_progress.h"
#include "cleaning/options.h"
#include "cleaning/repair.h"
#include "cleaning/rules.h"
#include "data/corpus.h"
#include "text/languages.h"

namespace starling {

struct CleanReport;

struct CleanJob {
  DataOptions data;                   // corpora in files
  Languages languages;                // of corpora that do not name theirs
  std::vector<CorpusFiles> held_out;  // validation and test sets
  CleanOptions options;
  std::string output;  // a directory, which must not exist
  // Returns a configuration that names what is kept, for train.yml; may be empty.
  std::function<std::string(const CleanReport&)> configuration;
  int threads = 1;
};

// A pair that broke a rule, and nothing else if there is one.
struct CleanExample {
  int64_t line = 0;
  std::string source, target;  // as judged, after repairs
  bool alone = false;
};

struct CorpusCleaning {
  std::string name, kept_file, weights_file;  // files in the output directory; no weights: ""
  int64_t pairs = 0, kept = 0;
  double usual_ratio = 1;                          // see PairKind
  RepairCounts repaired{};                         // sides
  std::array<int64_t, kRules> dropped{}, alone{};  // pairs that break a rule, and those that break it alone, by Rule
  std::array<std::vector<CleanExample>, kRules> examples;
};

struct CleanReport {
  std::vector<CorpusCleaning> corpora;
  double seconds = 0;
};

// Writes into the output directory, in the order of the corpora and their lines:
//
//   kept.tsv.zst      source <tab> target, for data.train; kept-1.tsv.zst and so on if there are several corpora
//   kept.weights.zst  of a corpus that has sentence-weights
//   dropped.tsv.zst   corpus, line, broken rules, where the same was before ("corpus:line", or ""), source, target, with tabs between
//   clean.json        what was counted, with examples
//   train.yml         CleanJob::configuration
//
// The result does not depend on the number of threads. Throws ConfigError, IoError or DataError; the directory is then absent.
CleanReport clean(const CleanJob& job, FileSystem& files, const TaskScreen& screen);

// The report for people, and as JSON.
std::string clean_text(const CleanReport& report);
std::string clean_json(const CleanReport& report);

}  // namespace starling
