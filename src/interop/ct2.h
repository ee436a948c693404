// Models of CTranslate2: a directory with model.bin, vocabularies, from version 3 on config.json; and what contains one, the packages of
// Argos Translate and LibreTranslate (.argosmodel).
#pragma once

#include "interop/ct2_file.h"
#include "interop/foreign_files.h"
#include "interop/imported_model.h"
#include "interop/vocabulary_files.h"

namespace starling {

// Reads the model, whose file may be in a folder of its own ("model/model.bin"). languages: of a folder that does not say them. Throws
// ConfigError naming what Starling's models do not have.
ImportedModel read_ct2_model(FileSystem& files, const ForeignFiles& folder, const ForeignFile& model_file,
                             const VocabularyFiles& vocabularies, const Languages& languages);

// The architecture of a file, without what its vocabularies and config.json say.
ModelConfig ct2_config(const Ct2File& file, const std::string& where);
// What is made of an array that another tensor has been made of, or in a wider type, charges the budget.
std::vector<OwnedTensor> ct2_tensors(const Ct2File& file, const ModelConfig& config, const std::string& where, ByteBudget& budget);

}  // namespace starling
