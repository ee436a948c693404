// What the vocabularies do not know of the training text: the model cannot learn it, and translations cannot have it.
#pragma once

#include <cstdint>
#include <string>

#include "data/token_store.h"
#include "decode/model_directory.h"

namespace starling {

// Of one side of the pairs that were counted.
struct UnknownText {
  int64_t pieces = 0, unknown = 0;      // ends of sentence left out
  int64_t sentences = 0, affected = 0;  // affected: with an unknown piece
};
struct UnknownTexts {
  UnknownText source, target;
};

// Counts all pairs of the store, or 65,536 of them spread evenly.
UnknownTexts count_unknown(const TokenStore& store, const Vocabularies& vocabularies);

// That as a line with the key that mends it, a warning where one sentence in a hundred is affected; "" where everything is known. `owner`:
// the model that the vocabularies come from, "" if this run may have others.
std::string unknown_line(const UnknownTexts& counts, const Vocabularies& vocabularies, const std::string& owner);

}  // namespace starling
