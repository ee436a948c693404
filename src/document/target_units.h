// A translation as words, marks and placeholders, each knowing from where in the source it came: what markup.cpp puts tags between.
#pragma once

#include <string>
#include <vector>

#include "document/markup.h"

namespace starling {

struct TargetUnit {
  std::string gap;  // white space before it
  std::string text;
  bool kept = false;             // a placeholder, as its bytes in the document
  bool word = false;             // else a mark
  std::vector<Range> from = {};  // bytes of the source that it comes from; by their middles it is known where it belongs
};

/// The units of a translation of translated_text() in order, with all that is kept of the sentence among them, also what was not
/// translated; spaces at its ends are dropped. No word is missing but what is spelled like a placeholder that the model changed.
std::vector<TargetUnit> target_units(const MarkedSentence& sentence, const AlignedText& translation);

struct UnitRange {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

/// The units within `among` that agree best with coming from `source`, next to each other and none of them `taken`; empty if none does.
UnitRange best_units(const std::vector<TargetUnit>& units, UnitRange among, Range source, const std::vector<bool>& taken);

/// The place between units within `among` that fits best to a place in the source: behind what comes from before it.
size_t best_place(const std::vector<TargetUnit>& units, UnitRange among, int64_t offset);

}  // namespace starling
