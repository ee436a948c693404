// Where the vocabularies of a foreign model are, if its folder does not say.
#pragma once

#include <string>

namespace starling {

// SentencePiece models, and pieces by number (vocab.yml) where a model has its own numbers. The target's are the source's if empty.
struct VocabularyFiles {
  std::string source, target;
  std::string source_numbers, target_numbers;
};

}  // namespace starling
