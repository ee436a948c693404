// `starling import`: models that other programs trained become model directories.
#pragma once

#include "interop/imported_model.h"
#include "interop/vocabulary_files.h"

namespace starling {

struct ImportOptions {
  std::string from, output;
  VocabularyFiles vocabularies;
  Languages languages;
};

// Recognises what `from` is (a file, a folder, an archive), reads it and writes the model directory, which must not exist.
// Returns what was read. Throws ConfigError for what Starling does not know or cannot do exactly, DataError for damaged files.
ImportedModel import_model(FileSystem& files, const ImportOptions& options);

}  // namespace starling
