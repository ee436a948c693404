// A stretch of a document that no separator interrupts: its text as people see it, where each byte of that stands in the document, and the
// tags and kept parts in it. document.cpp cuts it into sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/html.h"
#include "document/markup.h"

namespace starling {

struct DocumentRun {
  struct Tag {
    int64_t offset = 0;  // byte of the text that it stands before
    size_t token = 0;    // of scan_html
  };
  struct Kept {
    Range at;     // bytes of the text
    Range place;  // bytes of the document
    bool placeholder = false;
  };
  std::string text;
  std::vector<Range> places;  // of each byte of the text, bytes of the document; those of one character or entity are the same
  std::vector<Tag> tags;
  std::vector<Kept> kept;

  void clear() { text.clear(), places.clear(), tags.clear(), kept.clear(); }
};

/// All the text of a plain document. `lines`: with its line breaks, which are spaces otherwise.
DocumentRun plain_run(std::string_view document, bool lines);

/// Adds the text of a token of HTML or XML: white space is spaces, but for line breaks with `lines`; entities are characters, unknown ones
/// are kept.
void append_html_text(DocumentRun& run, std::string_view document, const HtmlToken& token, bool lines);

/// Adds an element that is not translated, from its first token to its last: short text stands in the sentence and is kept, other elements
/// become one tag, that of the first token.
void append_untouched(DocumentRun& run, std::string_view document, std::vector<HtmlToken>& tokens, size_t first, size_t last);

/// Adds the placeholders of the text to what is kept, with the tags within them, in order.
void keep_placeholders(DocumentRun& run, const std::vector<HtmlToken>& tokens);

}  // namespace starling
