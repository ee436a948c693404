// Models of ours as CTranslate2's: a directory of binary version 6.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "decode/model_directory.h"

namespace starling {

// The files model.bin, config.json and the vocabularies. `integers`: matrices as 8-bit integers with a scale for each output, those of
// the model's directory where it holds integers. Where CTranslate2 cannot compute our positions, a table of `positions` of them is written,
// which no sentence there may exceed. The model has no obstacles to CTranslate2 (models/portability.h).
std::vector<std::pair<std::string, std::string>> ct2_files(FileSystem& files, const LoadedModel& model, bool integers,
                                                           int64_t positions = 2048);

}  // namespace starling
