// Which of the files of a folder belong together to a model of Marian's. A training leaves several models there: the last one, those of
// earlier updates, the best by each metric, and what was quantised of them; each may have settings of its own.
#pragma once

#include <string>
#include <vector>

#include "interop/foreign_files.h"
#include "interop/vocabulary_files.h"

namespace starling {

struct MarianFiles {
  std::string weights;              // model.npz or .bin; "": there is none
  std::string settings;             // how to search, and which vocabularies: decoder.yml; "": there is none
  std::vector<std::string> others;  // further models of the folder, which were not chosen
};

// Finds the model of a folder: the one `chosen`, or else that which decoder.yml or config.yml names, the best one, or the last. Throws
// ConfigError with a command for each if these are different models; `path` is what messages call the folder.
MarianFiles find_marian(const ForeignFiles& folder, const std::string& chosen, const std::string& path);

// The models of a folder; of those below only if it has none itself.
std::vector<std::string> marian_models(const ForeignFiles& folder);
// Whether a file is a model of Marian's by its name and first bytes.
bool is_marian_model(const ForeignFiles& folder, const std::string& name);

// Completes the vocabularies that are given by what the settings name, in the folder or where they say, and by what else the folder has:
// SentencePiece models, or lists of pieces beside such. Throws ConfigError if there are none.
VocabularyFiles marian_vocabularies(FileSystem& files, const ForeignFiles& folder, const MarianFiles& marian, VocabularyFiles given);

}  // namespace starling
