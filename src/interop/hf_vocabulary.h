// The vocabularies of Hugging Face folders: SentencePiece models, and the numbers that MarianMT, M2M-100 and NLLB give to pieces.
#pragma once

#include <map>

#include "interop/hf_config.h"
#include "interop/imported_model.h"
#include "interop/vocabulary_files.h"

namespace starling {

// Pieces by number of both sides, named as ours: <s>, </s>, <unk>, <pad>; rows of the tables without a piece have names of their own.
struct HfPieces {
  std::vector<std::string> source, target;
  std::string source_model, target_model;  // SentencePiece models: names in the folder, or paths
  // Tokens that were added to the tokenizer, which finds them in text before SentencePiece splits the rest, and tags of languages.
  std::map<std::string, vocabulary_format::Found> found;
};

// Paths of `given` take the place of the folder's SentencePiece models. Throws ConfigError saying which file is missing, DataError if files
// are damaged or do not belong together.
HfPieces hf_pieces(FileSystem& files, const ForeignFiles& folder, const HfConfig& config, const VocabularyFiles& given);

Vocabularies hf_vocabularies(FileSystem& files, const ForeignFiles& folder, const HfPieces& pieces);

// Sets the prefixes of source and translation that M2M-100 and NLLB need, from `languages` or what the tokenizer's settings say, and fills
// in languages that are not given from these settings. Appends to the notes what the user should give.
void set_hf_languages(const ForeignFiles& folder, const HfConfig& config, const HfPieces& pieces, Languages& languages,
                      SearchOptions& search, std::vector<std::string>& notes);

}  // namespace starling
