// The last sentence of a side of a batch, which is changed as soon as it is appended (text_noise.h, subword sampling).
#pragma once

#include <span>
#include <vector>

#include "base/batch.h"

namespace starling {

inline std::span<const int32_t> last_sentence(const PackedTokens& side) {
  return std::span(side.tokens).subspan(static_cast<size_t>(side.offsets[side.offsets.size() - 2]));
}

inline void replace_last_sentence(PackedTokens& side, std::span<const int32_t> tokens) {
  side.tokens.resize(static_cast<size_t>(side.offsets[side.offsets.size() - 2]));
  side.offsets.pop_back();
  side.append(tokens.data(), tokens.data() + tokens.size());
}

}  // namespace starling
