// A run of document text that no separator interrupts: the text as people see it, the place of each of its bytes in the document, and the
// tags and kept parts in it. document.cpp splits it into sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/html.h"
#include "document/markup.h"
#include "document/own_placeholders.h"

namespace starling {

struct DocumentRun {
  struct Tag {
    int64_t offset = 0;  // byte of the text that follows it
    size_t token = 0;    // index among the tokens of scan_html
  };
  struct Kept {
    Range at;     // bytes of the text
    Range place;  // bytes of the document
    bool placeholder = false;
  };
  std::string text;
  std::vector<Range> places;  // for each byte of the text, its bytes in the document; equal for all bytes of a character or entity
  std::vector<Tag> tags;
  std::vector<Kept> kept;

  void clear() { text.clear(), places.clear(), tags.clear(), kept.clear(); }
};

/// Adds plain text, of a token of scan_plain_tags(). `lines`: keeps line breaks, which become spaces otherwise.
void append_plain_text(DocumentRun& run, std::string_view document, const HtmlToken& token, bool lines);

/// Adds the text of an HTML or XML token: white space becomes spaces, except line breaks if `lines`; entities become characters, unknown
/// entities are kept.
void append_html_text(DocumentRun& run, std::string_view document, const HtmlToken& token, bool lines);

/// Adds an element that is not translated, from its first token to its last: a short text stays in the sentence as a kept part, any other
/// element becomes a single tag, that of the first token.
void append_untouched(DocumentRun& run, std::string_view document, std::vector<HtmlToken>& tokens, size_t first, size_t last);

/// Adds the placeholders of the text, with the tags within them, to the kept parts, in order; `own` may be null.
void keep_placeholders(DocumentRun& run, const std::vector<HtmlToken>& tokens, const OwnPlaceholders* own);

}  // namespace starling
