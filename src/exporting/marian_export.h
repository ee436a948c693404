// Models of ours as Marian's, for Marian, bergamot-translator and Firefox.
#pragma once

#include "decode/model_directory.h"
#include "interop/foreign_array.h"

namespace starling {

struct MarianModel {
  std::vector<ForeignArray> arrays;  // with the settings
  std::string source, target;        // SentencePiece models; the same if joint
};

// A model that has no obstacles to Marian (models/portability.h). `integers`: matrices as 8-bit integers; then pieces that stand for
// nothing fill the vocabularies up to a multiple of 8, which the products of such matrices ask for.
MarianModel marian_model(const LoadedModel& model, bool integers);

}  // namespace starling
