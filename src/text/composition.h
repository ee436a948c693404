// Unicode's normalisation form C: letters and their marks as one code point each, where there is one. Forms that only look alike (wide
// letters, ligatures) stay: nothing here is a compatibility mapping.
#pragma once

#include <string>
#include <string_view>

namespace starling {

/// The text in normalisation form C.
std::u32string composed(std::u32string_view text);

/// Whether normalisation form C never changes anything across the place before this code point, whatever stands on both sides.
bool begins_composition(char32_t c);

}  // namespace starling
