// What a translator gets of a document: its sentences, those that are too long for the model in several parts; and the document from the
// translations of these.
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

// What was found for a part; the hypothesis needs its alignment where needs_links() says so.
struct PartTranslation {
  std::string text;
  Hypothesis hypothesis;
};

class DocumentParts {
 public:
  /// No part has more than `most_tokens` pieces of the source's vocabulary. `between`: called behind each sentence, of whose size depends
  /// how long it takes.
  DocumentParts(Document document, const Vocabulary& source, int64_t most_tokens, const std::function<void()>& between = {});

  const std::vector<std::string>& parts() const { return parts_; }
  bool needs_links(size_t part) const { return document_.needs_links(sentence_[part]); }
  /// Sentences that had to be cut.
  int64_t cut() const { return cut_; }
  /// The translated document; one translation a part.
  std::string assemble(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target) const {
    return assemble_with_links(translations, source, target, false).text;
  }
  /// The same as Document::assemble_with_links gives it. `all`: with the links of all parts, whose hypotheses then need alignments.
  AlignedText assemble_with_links(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target,
                                  bool all = true, const std::function<void()>& between = {}) const;

 private:
  Document document_;
  std::vector<std::string> parts_;
  std::vector<size_t> sentence_;  // of each part
  int64_t cut_ = 0;
};

}  // namespace starling
