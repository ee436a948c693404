// A document as people have it: lines and paragraphs, HTML or XML. It is taken apart into the sentences that a translator gets, and put
// together from their translations; white space, lines, tags, attributes, comments and placeholders come out as they were.
// docs/guides/documents.md says what is kept and how.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/aligned_text.h"
#include "document/html.h"
#include "document/markup.h"

namespace starling {

enum class DocumentFormat : uint8_t { text, html, xml };

// Where sentences end within a stretch of text. By default at marks and lines, in HTML at marks only.
enum class SentenceEnds : uint8_t { usual, marks_and_lines, marks, none };

struct DocumentOptions {
  SentenceEnds ends = SentenceEnds::usual;
  TagRules tags;
};

class Document {
 public:
  /// Takes time in proportion to the text. `language`: of the text, a code such as "de", "" if unknown. No input is refused: malformed
  /// UTF-8 and broken HTML are kept as they are.
  Document(std::string text, DocumentFormat format, std::string_view language, const DocumentOptions& options = {});

  /// What is to be translated, without markup and with entities resolved, and without the placeholders at the ends of a sentence; none is
  /// blank or longer than kLongestSentence.
  const std::vector<std::string>& sentences() const { return sentences_; }
  /// What is to be translated without any placeholder and what else is kept, a sentence a line: what tells which language it is.
  std::string words() const;
  /// Whether assemble() makes use of the links of this sentence's translation: there are tags in it, or placeholders that are translated.
  bool needs_links(size_t sentence) const;

  /// The document with its sentences translated, one translation each.
  std::string assemble(std::span<const AlignedText> translations) const { return assemble_with_links(translations).text; }
  /// The same with the links of all sentences, between bytes of the document and of the result; of HTML none.
  AlignedText assemble_with_links(std::span<const AlignedText> translations) const;

  static constexpr size_t kLongestSentence = 2000;  // bytes; what is longer is cut at a clause or space

 private:
  class Builder;
  std::string text_;
  bool has_tags_;  // HTML or XML
  std::vector<std::string> sentences_;
  std::vector<MarkedSentence> marked_;  // the plain ones without their texts
  std::vector<Range> places_;           // bytes of text_ that each sentence stands for; between them text_ stays
};

}  // namespace starling
