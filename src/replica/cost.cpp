#include "replica/cost.h"

#include <algorithm>

#include "autograd/recurrent.h"
#include "models/rows.h"

namespace starling {

ComputeCost::ComputeCost(Model& model, std::span<const Bucket> buckets) : pieces_(buckets.size()), units_(model.units()) {
  const std::vector<EmbeddingTable> tables = model.embedding_tables();
  const auto element = static_cast<double>(size_of(model.parameters().backend().activation()));
  for (const Parameter* p : model.parameters().declared()) {
    if (p->shape.rank() != 2) continue;
    const auto count = static_cast<double>(p->shape.count());
    const double product = 2 * count, whole_product = 2 * static_cast<double>(p->whole.count());  // per row, of what is here and of all
    // Packed elements are read; f32 gradients are read and written. Packing reads f32 and writes packed elements, which caches read first.
    const double read = element * count, added = 8 * count, packed = (4 + 2 * element) * count;
    const bool here = p->hold != Parameter::absent;
    const bool apart = std::find(p->units.begin(), p->units.end(), model.parameters().units().everywhere) != p->units.end();
    Part& unit_part = units_[p->units.front()];
    Part &forward_part = apart ? output_forward_ : forward_, &backward_part = apart ? output_backward_ : backward_;
    // Adds to each bucket its share of p.
    const auto each_share = [&](const auto& add) {
      for (size_t b = 0; p->hold == Parameter::owned && b < buckets.size(); ++b) {
        const int64_t begin = std::max(p->offset, buckets[b].range.begin),
                      end = std::min(p->offset + p->shape.count(), buckets[b].range.end);
        if (begin < end) add(pieces_[b], static_cast<double>(end - begin) / count);
      }
    };
    if (const EmbeddingTable* table = table_of(tables, *p)) {
      const auto width = static_cast<double>(p->shape[1]);
      const auto look_up = [&](Part& part, double bytes) {
        if (table->source) part.source.looked_up += bytes;
        if (table->target) part.target.looked_up += bytes;
      };
      if (p->hold == Parameter::owned) {
        for (Part* part : {&forward_, &unit_part}) look_up(*part, (4 + 2 * element) * width);
        look_up(backward_, (element + 8) * width);
      }
      each_share([&](Part& part, double share) { look_up(part, (element + 8) * width * share); });
      if (table->output) target_weight_ += 3 * whole_product;
      if (!table->output || !model.has_output()) continue;
      for (Part* part : {&forward_part, &units_.back()}) {
        Side& side = part->target;
        side.row += 3 * product;
        side.moved += 2 * read + added;
        side.packed += 2 * packed;
      }
      continue;
    }
    const bool source = multiplies_source(*p), recurrent = multiplies_steps(*p);
    (source ? source_weight_ : target_weight_) += 3 * whole_product;
    if (!here) continue;
    recurrent_ |= recurrent;
    for (Part* part : {&forward_part, &unit_part}) {
      Side& forward = source ? part->source : part->target;
      (recurrent ? forward.recurrent_row : forward.row) += product;
      forward.moved += read;
      forward.packed += packed;
    }
    // The gradient of the rows is computed step by step where they are recurrent; that of the weights, for all rows at once.
    const auto add_backward = [&](Part& part, double share) {
      Side& side = source ? part.source : part.target;
      (recurrent ? side.recurrent_row : side.row) += product * share;
      side.row += product * share;
      side.moved += (read + added) * share;
      side.packed += packed * share;
    };
    add_backward(backward_part, 1);
    each_share(add_backward);
  }
}

PassRows ComputeCost::rows(const Batch& batch) const {
  return rows(batch, {static_cast<double>(padded_rows(batch.source)), static_cast<double>(padded_rows(batch.target))});
}

PassRows ComputeCost::rows(const Batch& batch, const StepShare& share) const {
  const double source = share.source / static_cast<double>(padded_rows(batch.source)),
               target = share.target / static_cast<double>(padded_rows(batch.target));
  PassRows rows{share.source, share.target};
  rows.source_tokens = source * static_cast<double>(batch.source.count());
  rows.target_tokens = target * static_cast<double>(batch.target.count());
  if (!recurrent_) return rows;
  rows.source_recurrent = source * static_cast<double>(recurrent_rows(batch.source));
  rows.target_recurrent = target * static_cast<double>(recurrent_rows(batch.target));
  return rows;
}

Work ComputeCost::Part::of(Work::Kind kind, const PassRows& rows, bool packs) const {
  Work work{kind, 0, packs ? source.packed + target.packed : 0};
  const auto add = [&](const Side& side, double row, double recurrent_row, double tokens) {
    work.flops += side.row * row + side.recurrent_row * recurrent_row;
    if (row > 0) work.bytes += side.moved + side.looked_up * tokens;
  };
  add(source, rows.source, rows.source_recurrent, rows.source_tokens);
  add(target, rows.target, rows.target_recurrent, rows.target_tokens);
  return work;
}

Work ComputeCost::forward(const PassRows& rows, bool packs) const { return forward_.of(Work::forward, rows, packs); }

Work ComputeCost::backward(const PassRows& rows, int64_t bucket, bool packs) const {
  return (bucket < 0 ? backward_ : pieces_[static_cast<size_t>(bucket)]).of(Work::backward, rows, packs);
}

}  // namespace starling
