// A sentence with tags and placeholders in it, and how they get into its translation: a pair of tags goes around the words that come from
// the words between them, any other tag between the words that come from its neighbours. A placeholder that the model changed or dropped is
// put back; no word goes for it. Those at the ends of a sentence the model does not even get. Each tag and placeholder stands in the result
// exactly once, and pairs stay nested.
#pragma once

#include <string>
#include <vector>

#include "base/range.h"
#include "document/aligned_text.h"

namespace starling {

struct MarkedSentence {
  struct Tag {
    int64_t offset = 0;  // byte of the text that it stands before
    std::string bytes;
    int64_t partner = -1;  // the tag of the sentence that opens or closes the same element
    bool half = false;     // its partner is in another sentence: it keeps its order among those
  };
  struct Kept {
    Range at;                  // bytes of the text
    std::string bytes;         // what stands for it in the document, with its tags
    bool placeholder = false;  // found by find_placeholders()
  };
  std::string text;        // as in the document
  Range front, back;       // bytes of the text that are not translated: placeholders at its ends, and the spaces around them
  std::vector<Tag> tags;   // in the order of the document
  std::vector<Kept> kept;  // in order, not overlapping
  bool escape = false;     // the document is HTML
  bool plain() const { return tags.empty() && kept.empty(); }

  /// Finds `front` and `back`. Behind `back` there may be the marks that end the sentence, which are translated.
  void leave_out_ends();
  /// What is translated: the text without `front` and `back`.
  std::string translated_text() const;
  /// Bytes of the text from those of translated_text().
  Range in_text(Range translated) const;
  bool is_left_out(const Kept& k) const { return k.at.begin < front.end || (k.at.begin >= back.begin && k.at.begin < back.end); }
};

/// Whether a mark ends a sentence.
bool is_final_mark(char32_t c);

/// The translation of a sentence's translated_text() with its tags and placeholders, as it stands in the document, and its links. Without
/// links, words are taken to be in the order of the source.
AlignedText place_markup(const MarkedSentence& sentence, const AlignedText& translation);

}  // namespace starling
