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

std::vector<int32_t> inverse_of(std::span<const int32_t> order, int64_t rows) {
  std::vector<int32_t> inverse(static_cast<size_t>(rows), -1);
  for (size_t n = 0; n < order.size(); ++n)
    if (order[n] >= 0) inverse[order[n]] = static_cast<int32_t>(n);
  return inverse;
}

std::vector<int32_t> paired_order(const PackedTokens& packed, size_t rows) {
  std::vector<int32_t> order;
  for (int64_t b = 0; b < packed.sentences(); b += 2) {
    const int32_t length = packed.offsets[b + 1] - packed.offsets[b];
    CHECK(packed.offsets[b + 2] - packed.offsets[b + 1] == length, "sentences {} and {} of a pair differ in length", b, b + 1);
    for (int32_t i = packed.offsets[b]; i < packed.offsets[b + 1]; ++i) {
      order.push_back(i);
      order.push_back(i + length);
    }
  }
  order.resize(rows, -1);
  return order;
}

}  // namespace starling
