// What `starling translate` is told on its command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decode/translation_lines.h"
#include "program/search_arguments.h"

namespace starling {

struct TranslateArguments {
  std::vector<std::string> models;
  std::string output = "-";
  DeviceChoice compute;
  std::vector<std::string> inputs{"-"};
  SearchArguments search;
  int64_t n_best = 1, batch_sentences = 64, max_source_tokens = 1000;
  int64_t shards = 1;
  bool quiet = false, document = false, most_tokens_given = false;
  bool leaves_other_languages() const { return source_language == "auto"; }
  std::string format = "auto", source_language, target_language, glossary, memory, prefix_file;
  LineFormat lines;
  std::vector<std::string> keep;  // expressions of placeholders
  bool all_lines = false;         // also those without letters
  bool confidence = false;
  bool tsv = false;  // a line is a source, a tab, and the beginning of its translation
  Translator::Form form;
  std::vector<double> weights;  // of an ensemble
  bool sampling = false;
  Translator::Sampling drawing;
};

// Adds the verb, without what it does. Options fill in the arguments.
CLI::App* add_translate_arguments(CLI::App& app, const std::shared_ptr<TranslateArguments>& arguments);

// Throws ConfigError for options that do not go together.
void check(const TranslateArguments& arguments);

}  // namespace starling
