#include "models/rows.h"

namespace starling {

Rows make_rows(const PackedTokens& packed, const std::vector<int64_t>& ids, int64_t multiple) {
  const int64_t n = packed.count(), padded = round_up(std::max<int64_t>(n, 1), multiple);
  Rows rows;
  rows.tokens = packed.tokens;
  rows.tokens.resize(padded, -1);
  rows.positions.resize(padded, 0);
  rows.sentence.resize(padded, 0xffffffffu);
  rows.position.resize(padded, 0);
  for (int64_t b = 0; b < packed.sentences(); ++b)
    for (int32_t i = packed.offsets[b]; i < packed.offsets[b + 1]; ++i) {
      rows.positions[i] = i - packed.offsets[b];
      rows.position[i] = static_cast<uint32_t>(rows.positions[i]);
      rows.sentence[i] = static_cast<uint32_t>(b < static_cast<int64_t>(ids.size()) ? ids[b] : b);
    }
  return rows;
}

std::vector<int32_t> shifted(const PackedTokens& target, int32_t begin, size_t rows) {
  std::vector<int32_t> inputs(rows, -1);
  for (int64_t b = 0; b < target.sentences(); ++b)
    for (int32_t i = target.offsets[b]; i < target.offsets[b + 1]; ++i) inputs[i] = i == target.offsets[b] ? begin : target.tokens[i - 1];
  return inputs;
}

std::vector<float> row_weights(const Batch& batch, size_t rows) {
  std::vector<float> weights;
  for (size_t b = 0; b < batch.weights.size(); ++b)
    weights.insert(weights.end(), batch.target.offsets[b + 1] - batch.target.offsets[b], batch.weights[b]);
  if (!weights.empty()) weights.resize(rows, 0.0f);
  return weights;
}

}  // namespace starling
