// A warm-up for millions of pairs is most of a run on few: then hardly anything is learned for minutes, and nothing says why.
#pragma once

#include <string>

#include "train/config.h"

namespace starling {

// What to try where a corpus of fewer than 100,000 pairs is passed more than three times before the warm-up of a Transformer ends; "" where
// that is not so.
std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch);

}  // namespace starling
