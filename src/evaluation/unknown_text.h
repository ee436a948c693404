// Counts what the vocabularies do not know of the training text: the model cannot learn it, and translations cannot contain it.
#pragma once

#include <cstdint>
#include <string>

#include "data/token_store.h"
#include "decode/model_directory.h"

namespace starling {

// The counts of one side.
struct UnknownText {
  int64_t pieces = 0, unknown = 0;      // without ends of sentence
  int64_t sentences = 0, affected = 0;  // affected: with an unknown piece
};
struct UnknownTexts {
  UnknownText source, target;
};

// Counts all pairs of the store, or 65,536 of them spread evenly.
UnknownTexts count_unknown(const TokenStore& store, const Vocabularies& vocabularies);

// Returns the counts as a line for people with the key that helps, as a warning if one sentence in a hundred is affected; "" if everything
// is known. `owner`: the model that the vocabularies come from; "" if this run may choose its own.
std::string unknown_line(const UnknownTexts& counts, const Vocabularies& vocabularies, const std::string& owner);

}  // namespace starling
