// The vocabularies of Hugging Face folders: SentencePiece models, and the numbers that MarianMT, M2M-100 and NLLB give to pieces.
#pragma once

#include "interop/hf_config.h"
#include "interop/imported_model.h"
#include "interop/vocabulary_files.h"

namespace starling {

// Pieces by number of both sides, named as ours: <s>, </s>, <unk>, <pad>; rows of the tables without a piece have names of their own.
struct HfPieces {
  std::vector<std::string> source, target;
  std::string source_model, target_model;  // SentencePiece models: names in the folder, or paths
  bool written = false;                    // pieces that the target's model does not have are text
};

// Paths of `given` take the place of the folder's SentencePiece models. Throws ConfigError saying which file is missing, DataError if files
// are damaged or do not belong together.
HfPieces hf_pieces(FileSystem& files, const ForeignFiles& folder, const HfConfig& config, const VocabularyFiles& given);

Vocabularies hf_vocabularies(FileSystem& files, const ForeignFiles& folder, const HfPieces& pieces);

// The piece that stands for a language of this code, such as __en__, eng_Latn or >>eng<<; "" if there is none among the pieces.
std::string hf_language_piece(const std::vector<std::string>& pieces, const std::string& code);

// Sets the prefixes of source and translation that a model of many languages needs, from `languages` or what the tokenizer's settings say,
// and fills in languages that are not given from these settings. Appends to the notes what the user should give.
void set_hf_languages(const ForeignFiles& folder, const HfConfig& config, const HfPieces& pieces, Languages& languages,
                      SearchOptions& search, std::vector<std::string>& notes);

}  // namespace starling
