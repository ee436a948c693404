// A document as users have it: lines and paragraphs, HTML or XML. It is split into the sentences that a translator gets and reassembled
// from their translations; white space, lines, tags, attributes, comments and placeholders are preserved. docs/guides/documents.md says
// what is kept and how.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/aligned_text.h"
#include "document/html.h"
#include "document/markup.h"
#include "document/own_placeholders.h"

namespace starling {

enum class DocumentFormat : uint8_t { text, html, xml };

// Where sentences end within a run of text. `usual` means at marks and lines, but in HTML at marks only.
enum class SentenceEnds : uint8_t { usual, marks_and_lines, marks, none };

struct DocumentOptions {
  SentenceEnds ends = SentenceEnds::usual;
  TagRules tags;
  std::shared_ptr<const OwnPlaceholders> own_placeholders;  // null: only those of find_placeholders()
  bool operator==(const DocumentOptions&) const = default;
};

class Document {
 public:
  /// Takes linear time. `language` is the language of the text, a code such as "de"; "" if unknown. No input is refused: malformed UTF-8
  /// and broken HTML are kept as they are.
  Document(std::string text, DocumentFormat format, std::string_view language, const DocumentOptions& options = {});

  /// The sentences to translate, without markup, with entities resolved and without placeholders at either end; none is blank or longer
  /// than kLongestSentence.
  const std::vector<std::string>& sentences() const { return sentences_; }
  /// Returns the text to translate without placeholders and other kept parts, one sentence per line: for detecting the language.
  std::string words() const;
  /// Returns whether a sentence is the first of its line, or of its block between tags.
  bool begins_line(size_t sentence) const;
  /// Returns whether assemble() uses the links of this sentence's translation: it has tags, or placeholders that are passed to the model.
  bool needs_links(size_t sentence) const;

  /// Returns the document with its sentences replaced by their translations, one each. Those that are their own translation keep their
  /// bytes.
  std::string assemble(std::span<const AlignedText> translations) const { return assemble_with_links(translations).text; }
  /// The same with the links of all sentences, between bytes of the document and of the result; without links for HTML.
  AlignedText assemble_with_links(std::span<const AlignedText> translations) const;
  /// Returns the number of bytes that are kept between the previous sentence and this one.
  size_t kept_before(size_t sentence) const {
    return static_cast<size_t>(places_[sentence].begin - (sentence > 0 ? places_[sentence - 1].end : 0));
  }
  /// Adds to `out` what is kept between the previous sentence and this one, and this one's translation.
  void append_sentence(AlignedText& out, size_t sentence, const AlignedText& translation) const;

  static constexpr size_t kLongestSentence = 2000;  // bytes; longer sentences are split at a clause or space

 private:
  class Builder;
  std::string text_;
  bool has_tags_;  // HTML or XML
  std::vector<std::string> sentences_;
  std::vector<MarkedSentence> marked_;  // plain sentences are stored without their text
  std::vector<Range> places_;           // bytes of text_ that each sentence replaces; between them text_ is kept
};

}  // namespace starling
