// The vocabularies of a foreign model.
#pragma once

#include <string>

#include "interop/foreign_files.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {

// Where they are, if the model's folder does not say: SentencePiece models, and pieces by number (vocab.yml) where a model has its own
// numbers. The target's are the source's if empty.
struct VocabularyFiles {
  std::string source, target;
  std::string source_numbers, target_numbers;
};

// The vocabulary of a SentencePiece model with these pieces by number (vocabulary_format::renumbered).
Vocabulary numbered_vocabulary(const ForeignFile& model, const vocabulary_format::Listing& listing);

}  // namespace starling
