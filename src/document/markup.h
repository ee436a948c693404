// A sentence with tags and placeholders, and their transfer to its translation: a pair of tags is placed around the words that come from
// the words between them, any other tag between the words that come from its neighbours. A placeholder that the model changed or dropped is
// restored, and no word is removed for it. Placeholders at the ends of a sentence are not passed to the model at all. Each tag and
// placeholder appears in the result exactly once, and pairs stay nested.
#pragma once

#include <string>
#include <vector>

#include "base/range.h"
#include "document/aligned_text.h"

namespace starling {

struct MarkedSentence {
  struct Tag {
    int64_t offset = 0;  // byte of the text that follows it
    std::string bytes;
    int64_t partner = -1;  // the tag of this sentence that opens or closes the same element; -1: none
    bool half = false;     // its partner is in another sentence: such tags keep their order
  };
  struct Kept {
    Range at;                  // bytes of the text
    std::string bytes;         // its bytes in the document, with its tags
    bool placeholder = false;  // found by find_placeholders()
  };
  std::string text;        // as in the document
  Range front, back;       // bytes of the text that are not translated: placeholders at its ends and the spaces around them
  std::vector<Tag> tags;   // in the order of the document
  std::vector<Kept> kept;  // in order, not overlapping
  bool escape = false;     // the document is HTML or XML
  bool plain() const { return tags.empty() && kept.empty(); }

  /// Sets `front` and `back`. The marks that end the sentence may follow `back`; they are translated.
  void leave_out_ends();
  /// Returns the text to translate: without `front` and `back`.
  std::string translated_text() const;
  /// Maps bytes of translated_text() to bytes of the text.
  Range in_text(Range translated) const;
  bool is_left_out(const Kept& k) const { return k.at.begin < front.end || (k.at.begin >= back.begin && k.at.begin < back.end); }
};

/// Returns whether a character is a mark that ends a sentence.
bool is_final_mark(char32_t c);

/// Returns the translation of a sentence's translated_text() with tags and placeholders inserted, as it goes into the document, and its
/// links. Without links, words are assumed to be in the order of the source.
AlignedText place_markup(const MarkedSentence& sentence, const AlignedText& translation);

}  // namespace starling
