// A translation as words, marks and placeholders, each with the bytes of the source that it came from; markup.cpp places tags between them.
#pragma once

#include <string>
#include <vector>

#include "document/markup.h"

namespace starling {

struct TargetUnit {
  std::string gap;  // white space before it
  std::string text;
  bool kept = false;             // a placeholder, as its bytes in the document
  bool word = false;             // false: a mark
  std::vector<Range> from = {};  // bytes of the source that it comes from; their midpoints decide where it belongs
};

/// Returns the units of a translation of translated_text() in order, including all kept parts of the sentence, even those that were not
/// translated; spaces at the ends are dropped. No word is lost except those spelled like a placeholder that the model changed.
std::vector<TargetUnit> target_units(const MarkedSentence& sentence, const AlignedText& translation);

struct UnitSpan {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

/// Returns the consecutive units within `among`, none of them `taken`, that best match an origin in `source`; empty if none does.
UnitSpan best_units(const std::vector<TargetUnit>& units, UnitSpan among, Range source, const std::vector<bool>& taken);

/// Returns the position between units within `among` that best matches an offset in the source: after the unit that comes from before it.
size_t best_place(const std::vector<TargetUnit>& units, UnitSpan among, int64_t offset);

}  // namespace starling
