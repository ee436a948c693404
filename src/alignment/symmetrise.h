// Puts the alignments of both directions together, as Moses and atools do.
#pragma once

#include <array>
#include <cstdint>

#include "text/links.h"

namespace starling {

enum class Symmetrisation : uint8_t { grow_diag_final_and, grow_diag_final, grow_diag, intersect, unite, forward, reverse };
constexpr auto words(Symmetrisation) {
  return std::array{"grow-diag-final-and", "grow-diag-final", "grow-diag", "intersect", "union", "forward", "reverse"};
}

// forward: links of each target word to a source word; reverse: of each source word to a target word. Both, and the result, as (source,
// target). The result is sorted, but that of forward and reverse, which is as given.
Links symmetrised(const Links& forward, const Links& reverse, Symmetrisation how);

}  // namespace starling
