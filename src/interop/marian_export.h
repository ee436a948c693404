// Models of ours as Marian's, for Marian, bergamot-translator and Firefox.
#pragma once

#include "decode/model_directory.h"
#include "interop/foreign_array.h"

namespace starling {

// The arrays of Marian's model, with its settings. `integers`: matrices as 8-bit integers where intgemm can multiply them. Throws
// ConfigError saying what Marian's models cannot have, and what to train instead.
std::vector<ForeignArray> marian_arrays(const LoadedModel& model, bool integers);

}  // namespace starling
