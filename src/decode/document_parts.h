// Splits a document into what a translator gets, its sentences, with those that are too long for the model split into several parts, and
// reassembles the document from their translations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/range.h"
#include "decode/search.h"
#include "document/document.h"
#include "text/vocabulary.h"

namespace starling {

// The usual limit of a part, in tokens of the source: models are seldom trained on longer sentences.
inline constexpr int64_t kDocumentTokens = 200;

// The translation of a part. The hypothesis needs its alignment if needs_links() says so.
struct PartTranslation {
  std::string text;
  Hypothesis hypothesis;
};

// Sentences as parts that fit the model.
class SentenceParts {
 public:
  /// No part exceeds `most_tokens` pieces of the source vocabulary; an empty sentence has no parts. A language's tag that is typed in front
  /// of a line holds for all of its parts. `between` is called after each sentence, whose time depends on its length.
  SentenceParts(std::span<const std::string> sentences, const Vocabulary& source, int64_t most_tokens,
                const std::function<void()>& between = {}, const std::function<bool(size_t sentence)>& begins_line = {});

  /// The parts as they are translated.
  const std::vector<std::string>& parts() const { return tagged_.empty() ? parts_ : tagged_; }
  size_t sentence_of(size_t part) const { return sentence_[part]; }
  /// Returns the parts of a sentence: the number of the first, and of the one after the last.
  Range parts_of(size_t sentence) const;
  /// Returns the number of sentences that had to be split.
  int64_t cut() const { return cut_; }
  /// Returns a translated sentence from the translations of its parts, whose hypotheses need alignments if it is to have `links`.
  AlignedText join_sentence(size_t sentence, std::span<const PartTranslation> translations, const Vocabulary& source,
                            const Vocabulary& target, bool links) const;
  /// Returns the translated sentences from one translation per part, with links where `needs_links` of the sentence says so: there the
  /// hypotheses need alignments.
  std::vector<AlignedText> join(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target,
                                const std::function<bool(size_t sentence)>& needs_links, const std::function<void()>& between = {}) const;

 private:
  std::vector<std::string> parts_;
  std::vector<std::string> tagged_;  // parts_ with the tags of their lines; empty if the vocabulary has no tags that are typed
  std::vector<size_t> sentence_;     // index of each part's sentence
  size_t sentences_;
  int64_t cut_ = 0;
};

class DocumentParts {
 public:
  /// As SentenceParts does with the document's sentences.
  DocumentParts(Document document, const Vocabulary& source, int64_t most_tokens, const std::function<void()>& between = {});

  const std::vector<std::string>& parts() const { return sentences_.parts(); }
  const Document& document() const { return document_; }
  const SentenceParts& sentences() const { return sentences_; }
  bool needs_links(size_t part) const { return document_.needs_links(sentences_.sentence_of(part)); }
  /// Returns the number of sentences that had to be split.
  int64_t cut() const { return sentences_.cut(); }
  /// Returns the translated document from one translation per part.
  std::string assemble(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target) const {
    return assemble_with_links(translations, source, target, false).text;
  }
  /// Does the same and returns links as Document::assemble_with_links does. With `all`, returns the links of all parts, whose hypotheses
  /// then need alignments.
  AlignedText assemble_with_links(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target,
                                  bool all = true, const std::function<void()>& between = {}) const;
  /// Returns the document's translated sentences, with the links that assemble_with_links() uses.
  std::vector<AlignedText> join(std::span<const PartTranslation> translations, const Vocabulary& source, const Vocabulary& target,
                                bool all = true, const std::function<void()>& between = {}) const;

 private:
  Document document_;
  SentenceParts sentences_;
};

}  // namespace starling
