#include "train/cost.h"

namespace starling {

ComputeCost::ComputeCost(Model& model, std::span<const Bucket> buckets) : pieces_(buckets.size()), piece_bytes_(buckets.size()) {
  const std::vector<EmbeddingTable> tables = model.embedding_tables();
  for (const Parameter* p : model.parameters().declared()) {
    if (p->shape.rank() != 2) continue;
    const double product = 2.0 * static_cast<double>(p->shape.count());       // per row, of what is here
    const double whole_product = 2.0 * static_cast<double>(p->whole.count());
    const EmbeddingTable* table = table_of(tables, *p);
    const bool here = p->hold != Parameter::absent;
    if (here) weight_bytes_ += 4.0 * static_cast<double>(p->shape.count());
    if (table) {
      if (table->output) whole_.target += 3 * whole_product;
      if (table->output && model.has_output()) forward_.target += 3 * product;
      continue;
    }
    const bool source = multiplies_source(*p);
    (source ? whole_.source : whole_.target) += 3 * whole_product;
    if (!here) continue;
    (source ? forward_.source : forward_.target) += product;
    (source ? backward_.source : backward_.target) += 2 * product;
    for (size_t b = 0; p->hold == Parameter::owned && b < buckets.size(); ++b) {
      const int64_t begin = std::max(p->offset, buckets[b].range.begin), end = std::min(p->offset + p->shape.count(), buckets[b].range.end);
      if (begin >= end) continue;
      const double share = static_cast<double>(end - begin) / static_cast<double>(p->shape.count());
      (source ? pieces_[b].source : pieces_[b].target) += 2 * product * share;
      piece_bytes_[b] += 4.0 * static_cast<double>(end - begin);
    }
  }
}

Work ComputeCost::forward(double source_tokens, double target_tokens) const {
  return {Work::forward, forward_.source * source_tokens + forward_.target * target_tokens, 3 * weight_bytes_};
}

Work ComputeCost::backward(double source_tokens, double target_tokens, int64_t bucket) const {
  const PerToken& cost = bucket < 0 ? backward_ : pieces_[static_cast<size_t>(bucket)];
  return {Work::backward, cost.source * source_tokens + cost.target * target_tokens,
          bucket < 0 ? weight_bytes_ : piece_bytes_[static_cast<size_t>(bucket)]};
}

}  // namespace starling
