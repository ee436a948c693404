// Models of Marian (marian-nmt.github.io), of OPUS-MT and of Firefox, which are Marian's: model.npz or .bin with its settings inside, a
// vocabulary for each side, decoder.yml.
#pragma once

#include "interop/foreign_array.h"
#include "interop/imported_model.h"
#include "interop/marian_folder.h"
#include "interop/vocabulary_files.h"

namespace starling {

// The settings that a model of Marian's was trained with (special:model.yml), as ours. Throws ConfigError naming the option if Starling has
// no such model.
ModelConfig marian_config(const std::string& yaml, const std::string& where);

// How its decoder.yml says to search; settings that it lacks are Marian's defaults.
SearchOptions marian_search(const std::string& yaml, const std::string& where);

// The weights by our names.
std::vector<OwnedTensor> marian_tensors(std::vector<ForeignArray> arrays, const ModelConfig& config, const std::string& where);

// The pieces of a list by number: of a map to numbers (by its name .yml, .yaml or .json), or of other text, a piece a line. They charge the
// budget.
std::vector<std::string> marian_pieces(const std::string& text, const std::string& where, ByteBudget& budget);

// The vocabularies and the models that a decoder.yml names.
std::vector<std::string> marian_vocabulary_names(const std::string& yaml, const std::string& where);
std::vector<std::string> marian_model_names(const std::string& yaml, const std::string& where);

// Reads a model of a folder; paths of `vocabularies` and languages that are given take the place of what the folder names.
ImportedModel read_marian(FileSystem& files, const ForeignFiles& folder, const MarianFiles& marian, const VocabularyFiles& vocabularies,
                          const Languages& languages);

}  // namespace starling
