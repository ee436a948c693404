// A model that another program trained, in the terms of ours, on its way into a model directory.
#pragma once

#include <string>
#include <vector>

#include "decode/model_directory.h"
#include "interop/foreign_array.h"
#include "interop/foreign_files.h"

namespace starling {

// A tensor under our name, [in, out] for weights of layers and [tokens, width] for tables, that owns its bytes.
struct OwnedTensor {
  std::string name;
  std::string dtype;  // F32, or I8 with a further tensor NAME.scale as in docs/reference/model-format.md
  std::vector<int64_t> shape;
  ArrayBytes bytes;
};
OwnedTensor float_tensor(std::string name, std::vector<int64_t> shape, std::vector<float> values);

struct ImportedModel {
  std::string kind;  // what was found: "Marian v1.12.43, ..."
  ModelConfig config;
  SearchOptions search;
  Languages languages;
  Vocabularies vocabularies;
  std::vector<OwnedTensor> tensors;
  std::vector<std::string> notes;   // what the user should know, a sentence each
  std::vector<Part> further_files;  // kept with the model: its licence and README
};

// If sources of the model begin with a tag of the target language, such as >>fra<<: makes that of `target`, unless that is empty, the
// prefix, and appends notes with the prefix and the tags.
void set_typed_tag(ImportedModel& model, const std::string& target);

// The licence, README and metadata of a folder, to be kept with the model.
std::vector<Part> further_files(const ForeignFiles& folder);

// Writes the model directory; the parent directory must exist. Throws DataError if a tensor is missing, superfluous, of another shape than
// the configuration asks for, or not finite.
void publish_imported(FileSystem& files, const std::string& directory, const ImportedModel& model);

}  // namespace starling
