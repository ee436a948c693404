// A sentence with tags and placeholders in it, and how they get into its translation: a pair of tags goes around the words that come from
// the words between them, any other tag between the words that come from its neighbours, and a placeholder that the model changed is put
// back where its pieces came out. Each tag and placeholder stands in the result exactly once, and pairs stay nested.
#pragma once

#include <string>
#include <vector>

#include "base/range.h"
#include "text/aligned_text.h"

namespace starling {

struct MarkedSentence {
  struct Tag {
    int64_t offset = 0;  // byte of the text that it stands before
    std::string bytes;
    int64_t partner = -1;  // the tag of the sentence that opens or closes the same element
    bool half = false;     // its partner is in another sentence: it keeps its order among those
  };
  struct Kept {
    Range at;           // bytes of the text
    std::string bytes;  // what stands for it in the document, with its tags
  };
  std::string text;        // what is translated
  std::vector<Tag> tags;   // in the order of the document
  std::vector<Kept> kept;  // in order, not overlapping
  bool escape = false;     // the document is HTML
  bool plain() const { return tags.empty() && kept.empty(); }
};

/// The translation of a sentence with its tags and placeholders, as it stands in the document, and its links. Without links, words are taken
/// to be in the order of the source.
AlignedText place_markup(const MarkedSentence& sentence, const AlignedText& translation);

}  // namespace starling
