// Text in order that is either parallel or of one language, for those who judge its lines: damaged ones are given as far as they go.
#pragma once

#include <optional>
#include <string_view>

#include "data/corpus.h"

namespace starling {

class LinesOrPairs {
 public:
  // one_language: the corpus has a source alone. Throws what PairReader does.
  LinesOrPairs(const CorpusFiles& corpus, bool one_language) {
    if (one_language)
      lines_.emplace(corpus.source).mark_invalid_bytes();
    else
      pairs_.emplace(corpus).take_damaged_lines();
  }
  // Gets the next pair, as views valid until the next call; the target is empty in one language. Throws what PairReader does.
  bool next(std::string_view& source, std::string_view& target) {
    target = {};
    return pairs_ ? pairs_->next(source, target) : lines_->next(source);
  }
  float weight() const { return pairs_ ? pairs_->weight() : 1; }
  uint64_t bytes_read() const { return pairs_ ? pairs_->bytes_read() : lines_->bytes_read(); }
  int64_t line_number() const { return pairs_ ? pairs_->line_number() : lines_->line_number(); }

 private:
  std::optional<PairReader> pairs_;
  std::optional<LineReader> lines_;
};

}  // namespace starling
