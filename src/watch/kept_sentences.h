// Translations of the same few validation sentences by the newest validations that a run keeps, with their sources and references.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "watch/run_files.h"

namespace starling {

class KeptSentences {
 public:
  // Reads what is new below the run directory, as far as the look allows. Returns whether anything changed.
  bool refresh(const std::string& run, Look& look);
  // Returns whether the last look ended before everything was read.
  bool more() const { return more_; }
  // Returns {"by_step": [{"step", "lines"}], "source", "reference", "text"}: lists of the sentences; the last three only if the run has
  // them (validations/sentences.json, docs/reference/events.md).
  const nlohmann::json& json() const { return json_; }

 private:
  struct Sentence {
    size_t line;
    std::string text, source, reference;
  };
  void read_sentences(const std::string& run, Look& look);

  std::string mark_;  // of the directory when it was read
  std::vector<Sentence> sentences_;
  std::string sentences_mark_;
  std::map<int64_t, std::string> names_;
  std::map<int64_t, std::pair<std::string, std::vector<std::string>>> lines_;  // by update: mark of the file, and its lines
  bool more_ = false;
  nlohmann::json json_ = nlohmann::json::object();
};

}  // namespace starling
