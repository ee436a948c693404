// Splits a document into what a translator gets, its sentences, with those that are too long for the model split into several parts, and
// reassembles the document from their translations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/search.h"
#include "document/document.h"
#include "text/vocabulary.h"

namespace starling {

// The translation of a part. The hypothesis needs its alignment if needs_links() says so.
struct PartTranslation {
  std::string text;
  Hypothesis hypothesis;
};

class DocumentParts {
 public:
  /// No part exceeds `most_tokens` pieces of the source vocabulary. `between` is called after each sentence, whose time depends on its
  /// length.
  DocumentParts(Document document, const Vocabulary& source, int64_t most_tokens, const std::function<void()>& between = {});

  const std::vector<std::string>& parts() const { return parts_; }
  bool needs_links(size_t part) const { return document_.needs_links(sentence_[part]); }
  /// Returns the number of sentences that had to be split.
  int64_t cut() const { return cut_; }
  /// Returns the translated document from one translation per part.
  std::string assemble(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target) const {
    return assemble_with_links(translations, source, target, false).text;
  }
  /// Does the same and returns links as Document::assemble_with_links does. With `all`, returns the links of all parts, whose hypotheses
  /// then need alignments.
  AlignedText assemble_with_links(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target,
                                  bool all = true, const std::function<void()>& between = {}) const;

 private:
  Document document_;
  std::vector<std::string> parts_;
  std::vector<size_t> sentence_;  // index of each part's sentence
  int64_t cut_ = 0;
};

}  // namespace starling
