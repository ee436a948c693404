// Models of ours as Hugging Face folders: MarianMT for post-norm models, M2M-100 for pre-norm ones.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "decode/model_directory.h"

namespace starling {

// The files config.json, generation_config.json, model.safetensors, vocab.json (and target_vocab.json, where the tables of source and
// target are not one), source.spm, target.spm and tokenizer_config.json. MarianMT gets our positions as a table of `positions` rows, which
// no sentence there may exceed. Appends to the notes what is not exact. The model has no obstacles to transformers
// (models/portability.h).
std::vector<std::pair<std::string, std::string>> hf_files(const LoadedModel& model, std::vector<std::string>& notes,
                                                          int64_t positions = 2048);

}  // namespace starling
