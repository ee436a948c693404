// Models of Marian (marian-nmt.github.io) and of OPUS-MT, which are Marian's: model.npz with its settings inside, a vocabulary for each
// side, decoder.yml.
#pragma once

#include "interop/foreign_files.h"
#include "interop/imported_model.h"
#include "interop/npz.h"

namespace starling {

// Where the vocabularies are, if the folder does not say: SentencePiece models, and pieces by number (vocab.yml) where a model has its own
// numbers. The target's are the source's if empty.
struct VocabularyFiles {
  std::string source, target;
  std::string source_numbers, target_numbers;
};

// The settings that a model of Marian's was trained with (special:model.yml), as ours. Throws ConfigError naming the option if Starling has
// no such model.
ModelConfig marian_config(const std::string& yaml, const std::string& where);

// How its decoder.yml says to search; settings that it lacks are Marian's defaults.
SearchOptions marian_search(const std::string& yaml, const std::string& where);

// The weights by our names.
std::vector<OwnedTensor> marian_tensors(std::vector<NpyArray> arrays, const ModelConfig& config, const std::string& where);

// The pieces of a vocab.yml by number.
std::vector<std::string> marian_pieces(const std::string& yaml, const std::string& where);

bool is_marian(const ForeignFiles& folder);
// Reads the model of a folder; paths of `vocabularies` that are given take the place of what the folder names.
ImportedModel read_marian(FileSystem& files, const ForeignFiles& folder, const VocabularyFiles& vocabularies);

}  // namespace starling
