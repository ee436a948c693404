// Reads NumPy's archives of arrays, .npz: a zip of .npy files (NEP 1), as Marian writes its models.
#pragma once

#include <span>

#include "base/byte_budget.h"
#include "interop/foreign_array.h"

namespace starling {

// Throws DataError, beginning with `where`, for anything else.
// Arrays that are stored as they are lie in `bytes`; those that are deflated charge the budget.
std::vector<ForeignArray> read_npz(std::span<const std::byte> bytes, const std::string& where, ByteBudget& budget);
ForeignArray read_npy(ArrayBytes content, const std::string& where);

// The same the other way round.
std::string npz_of(std::span<const ForeignArray> arrays);

}  // namespace starling
