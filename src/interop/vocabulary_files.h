// The vocabularies of a foreign model.
#pragma once

#include <string>
#include <vector>

#include "interop/foreign_files.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {

constexpr int64_t kMostPieces = 4 << 20;  // of a vocabulary; the largest that are known have half a million
constexpr size_t kShortPiece = 15;        // bytes that a std::string holds itself
constexpr uint64_t kPieceBytes = 64;      // that a piece takes in a list which has just grown, besides its text if that is long

// Where they are, if the model's folder does not say: SentencePiece models, and pieces by number (vocab.yml) where a model has its own
// numbers. The target's are the source's if empty.
struct VocabularyFiles {
  std::string source, target;
  std::string source_numbers, target_numbers;
};

// The vocabulary of a SentencePiece model as it is. It charges the budget. Throws DataError, as do the others.
Vocabulary usual_vocabulary(ForeignFile model, ByteBudget& budget);
// The vocabulary of a SentencePiece model with these pieces by number (vocabulary_format::renumbered).
Vocabulary numbered_vocabulary(const ForeignFile& model, const vocabulary_format::Listing& listing, ByteBudget& budget);

// The lines of a list of pieces, without their ends. They charge the budget.
std::vector<std::string> pieces_in_lines(const std::string& text, const std::string& where, ByteBudget& budget);

}  // namespace starling
