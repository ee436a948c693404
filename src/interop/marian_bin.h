// Marian's binary models, .bin, as Firefox and bergamot-translator load them: f32, and matrices of 8-bit integers with one multiplier each
// (intgemm). Both type codes of these integers are read, browsermt's and Marian's own; browsermt's is written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/foreign_array.h"

namespace starling {

bool is_marian_bin(std::string_view bytes);
// Returns the arrays; integers as "q8", [in, out] and [tokens, width] as their shapes say. Throws DataError, beginning with `where`, if the
// bytes are not such a model. Floats lie in `bytes`; matrices of integers are copies, turned.
std::vector<ForeignArray> read_marian_bin(std::string_view bytes, const std::string& where);
std::vector<ForeignArray> read_marian_bin(std::string&& bytes, const std::string& where) = delete;
// The same the other way round, from "f4", "q8" and, for texts, "i1".
std::string marian_bin(std::span<const ForeignArray> arrays);

}  // namespace starling
