// What is to be cleaned, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cleaning/options.h"
#include "data/corpus.h"
#include "text/languages.h"

namespace starling {

struct CleanReport;

struct CleanJob {
  // Corpora in files, or one in a pipe, which is stored first; monolingual: their sources are the text, and they have no targets.
  DataOptions data;
  bool monolingual = false;
  Languages languages;                // of corpora that do not name theirs
  std::vector<CorpusFiles> held_out;  // validation and test sets
  CleanOptions options;
  std::string output;              // a directory, which must not exist
  std::vector<std::string> names;  // of the corpora, for people; empty: those of their files
  std::string name(size_t corpus) const { return corpus < names.size() ? names[corpus] : data.train[corpus].name(); }
  // Returns a configuration that names what is kept, for train.yml; may be empty.
  std::function<std::string(const CleanReport&)> configuration;
  int threads = 1;
  int64_t memory = int64_t{1} << 30;  // bytes to keep within; more makes no difference but time
};

// The options of one corpus. Throws ConfigError for keys that are unknown or that compare pairs of all corpora.
CleanOptions corpus_options(const CleanJob& job, const CorpusFiles& corpus);

}  // namespace starling
