// Where batches are cut: training, gradient accumulation and validation all do it in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "data/token_store.h"

namespace starling {

constexpr int64_t kMaxBatchTokens = int64_t{1} << 28;  // offsets are int32 and source sides may be larger

struct Limits {
  int64_t target, source;
};

// Cuts in one pass: batches within the limits, each ending near the end of its share of all target tokens.
template <class LengthsOf>
std::vector<int64_t> cut_into(int64_t count, const LengthsOf& lengths_of, Limits limits, int64_t parts, int64_t total) {
  std::vector<int64_t> cuts{0};
  int64_t source = 0, target = 0, done = 0;  // of the open batch; target tokens before it and in it
  for (int64_t i = 0; i < count; ++i) {
    const PairLengths lengths = lengths_of(i);
    // Share k ends at total * k / parts; a sentence that crosses this point goes to the side with more of its tokens.
    const auto share = static_cast<double>(total) * static_cast<double>(cuts.size()) / static_cast<double>(parts);
    const bool full = target + lengths.target > limits.target || source + lengths.source > limits.source;
    const bool share_reached = static_cast<double>(done) + 0.5 * lengths.target > share;
    if (i > cuts.back() && (full || share_reached)) {
      cuts.push_back(i);
      source = target = 0;
    }
    source += lengths.source;
    target += lengths.target;
    done += lengths.target;
  }
  if (count > 0) cuts.push_back(count);
  return cuts;
}

// Cuts sentences 0..count-1 into as few runs as possible, within the limits and about equal in target tokens: raises the number of parts
// until the cut has no more than that.
template <class LengthsOf>
std::vector<int64_t> cut(int64_t count, const LengthsOf& lengths_of, Limits limits) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += lengths_of(i).target;
  int64_t parts = std::max<int64_t>(1, (total + limits.target - 1) / limits.target);
  std::vector<int64_t> cuts;
  for (int tries = 0; tries < 4; ++tries) {
    cuts = cut_into(count, lengths_of, limits, parts, total);
    const auto obtained = static_cast<int64_t>(cuts.size()) - 1;
    if (obtained <= parts) break;
    parts = obtained;
  }
  return cuts;
}

inline Limits limits_of(int64_t batch_tokens, double source_factor) {
  if (batch_tokens < 1 || batch_tokens > kMaxBatchTokens)
    throw ConfigError(fmt::format("a batch of {} target tokens is not possible; choose 1 to {}, e.g. 4000", batch_tokens, kMaxBatchTokens));
  return {batch_tokens, static_cast<int64_t>(static_cast<double>(batch_tokens) * source_factor)};
}

}  // namespace starling
