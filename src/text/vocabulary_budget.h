// What a vocabulary takes in memory, which an untrusted SentencePiece model can drive to two hundred times its bytes.
#pragma once

#include "base/byte_budget.h"
#include "text/vocabulary_format.h"

namespace starling {

// Charges what SentencePiece and our own tables take for a model and for `further` pieces that are added to it. Throws DataError, beginning
// with `name`.
inline void charge_vocabulary(ByteBudget& budget, std::string_view model, uint64_t further, const std::string& name) {
  // Of each piece. One that a model and a list of numbers have both is counted twice; it takes 540 bytes in all (a model of 60,000 pieces).
  constexpr uint64_t kPieceBytes = 300;
  budget.take((static_cast<uint64_t>(vocabulary_format::part_count(model)) + further) * kPieceBytes, name, "the vocabulary");
}

}  // namespace starling
