// What a vocabulary takes in memory, which a SentencePiece model of a stranger's may make two hundred times its bytes.
#pragma once

#include "base/byte_budget.h"
#include "text/vocabulary_format.h"

namespace starling {

// Charges what SentencePiece and our own tables take for a model and for `further` pieces that are added to it. Throws DataError, beginning
// with `name`.
inline void charge_vocabulary(ByteBudget& budget, std::string_view model, uint64_t further, const std::string& name) {
  constexpr uint64_t kPieceBytes = 400;  // of each piece, measured with SentencePiece 0.1.97
  budget.take((static_cast<uint64_t>(vocabulary_format::part_count(model)) + further) * kPieceBytes, name, "the vocabulary");
}

}  // namespace starling
