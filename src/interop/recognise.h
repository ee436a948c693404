// What a path is: a model of ours, or of which other program, and in which files. Every verb that takes a model asks here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interop/foreign_files.h"
#include "interop/marian_folder.h"
#include "text/languages.h"

namespace starling {

enum class ModelKind : uint8_t { ours, ct2, hf, marian };

struct RecognisedModel {
  ModelKind kind = ModelKind::ours;
  std::unique_ptr<ForeignFiles> folder;  // null: ours
  std::string weights;                   // their file in the folder; "" for Hugging Face, whose weights may be in several
  MarianFiles marian;                    // of Marian's
};

// Recognises a model directory or run of ours, or a folder, an archive or a file of another program's: by the names of the files, then by
// their first bytes. Throws ConfigError, which says what was looked for, if it is none or is one of several.
RecognisedModel recognise(FileSystem& files, const std::string& path);

// The languages that the files beside a model name, without reading it: metadata.json of Argos and of Mozilla, and names such as
// model.ende.bin; "" for those that they do not name. Throws DataError for damaged metadata.
Languages languages_beside(const ForeignFiles& folder, const std::string& weights);
// The same of a path that may be anything.
Languages named_languages(FileSystem& files, const std::string& path);

}  // namespace starling
