// Models of Hugging Face's transformers: a folder with config.json, safetensors files and what its tokenizer needs, of MarianMT, M2M-100 or
// NLLB.
#pragma once

#include "interop/foreign_files.h"
#include "interop/imported_model.h"
#include "interop/vocabulary_files.h"

namespace starling {

// Whether a file of this name has weights, or is the index of such files.
bool is_hf_weights(const std::string& name);
// Whether the files are such a folder, of any model.
bool is_hf(const ForeignFiles& folder);
// Reads the model. `languages` are those that the user gave; they select the tags that a model of many languages needs. Throws ConfigError
// naming what Starling's models do not have, DataError for damaged files.
ImportedModel read_hf(FileSystem& files, const ForeignFiles& folder, const VocabularyFiles& vocabularies, const Languages& languages);

}  // namespace starling
