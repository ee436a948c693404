// What a translation of files is to do, as `starling translate` is told by its command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decode/translation_lines.h"

namespace starling {

struct TranslateOptions {
  std::vector<std::string> models;       // several: an ensemble of them
  std::vector<double> weights;           // of an ensemble
  std::vector<std::string> inputs{"-"};  // files; "-": standard input
  std::string output = "-";              // a file; "-": standard output
  DeviceChoice compute;
  int64_t shards = 1;  // of the model, on as many ranks
  int64_t batch_sentences = 64, max_source_tokens = 1000;
  bool most_tokens_given = false;
  // Returns a model's own search options with what is asked for in their place.
  std::function<SearchOptions(SearchOptions)> search = [](SearchOptions of_model) { return of_model; };
  bool beam_given = false;
  int64_t n_best = 1;
  bool sampling = false;
  Translator::Sampling drawing;
  std::string source_language, target_language, glossary, memory;
  bool leaves_other_languages() const { return source_language == "auto"; }
  bool quiet = false;

  // Of lines
  LineFormat lines;
  bool confidence = false;
  bool all_lines = false;  // also those without letters
  std::string prefix_file;
  bool tsv = false;  // a line is a source, a tab, and the beginning of its translation
  Translator::Form form;

  // Of documents
  bool document = false;
  std::string format = "auto";
  std::vector<std::string> keep;  // expressions of placeholders
};

// Throws ConfigError for options that do not go together.
void check(const TranslateOptions& options);

}  // namespace starling
