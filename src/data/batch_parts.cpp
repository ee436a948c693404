// Parts of a batch, and batches put together.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "data/batches.h"
#include "data/cut.h"

namespace starling {
namespace {

PairLengths lengths_in(const Batch& batch, int64_t i) {
  const auto length = [&](const PackedTokens& side) {
    return side.offsets[static_cast<size_t>(i) + 1] - side.offsets[static_cast<size_t>(i)];
  };
  return {length(batch.source), length(batch.target)};
}

// Appends sentences [begin, end) of a batch to those of another.
void add_sentences(const Batch& batch, int64_t begin, int64_t end, Batch& all) {
  all.sample_ids.insert(all.sample_ids.end(), batch.sample_ids.begin() + begin, batch.sample_ids.begin() + end);
  if (!batch.weights.empty()) all.weights.insert(all.weights.end(), batch.weights.begin() + begin, batch.weights.begin() + end);
  if (!batch.link_offsets.empty()) {
    if (all.link_offsets.empty()) all.link_offsets.assign(static_cast<size_t>(all.target.sentences()) + 1, 0);
    for (int64_t i = begin; i < end; ++i) {
      const auto from = batch.links.begin() + batch.link_offsets[static_cast<size_t>(i)],
                 to = batch.links.begin() + batch.link_offsets[static_cast<size_t>(i) + 1];
      all.links.insert(all.links.end(), from, to);
      all.link_offsets.push_back(static_cast<int32_t>(all.links.size()));
    }
  }
  for (int64_t i = begin; i < end; ++i)
    for (const auto& [from, to] : {std::pair(&batch.source, &all.source), std::pair(&batch.target, &all.target)})
      to->append(from->tokens.data() + from->offsets[static_cast<size_t>(i)],
                 from->tokens.data() + from->offsets[static_cast<size_t>(i) + 1]);
}

Batch sentences_of(const Batch& batch, int64_t begin, int64_t end) {
  Batch part;
  part.epoch = batch.epoch;
  part.index = batch.index;
  part.guide = batch.guide;
  add_sentences(batch, begin, end, part);
  return part;
}

}  // namespace

void append(Batch& to, const Batch& more) {
  if (to.weights.empty() && !more.weights.empty()) to.weights.assign(to.sample_ids.size(), 1.0f);
  const size_t before = to.sample_ids.size();
  add_sentences(more, 0, more.target.sentences(), to);
  if (!to.weights.empty()) to.weights.resize(before + more.sample_ids.size(), 1.0f);
  if (!to.link_offsets.empty()) to.link_offsets.resize(to.sample_ids.size() + 1, static_cast<int32_t>(to.links.size()));
  to.guide = std::max(to.guide, more.guide);
}

std::vector<Batch> split(const Batch& batch, int64_t max_target_tokens, int64_t max_source_tokens) {
  CHECK(max_target_tokens > 0 && max_source_tokens > 0, "{} and {} tokens", max_target_tokens, max_source_tokens);
  const auto lengths_of = [&](int64_t i) { return lengths_in(batch, i); };
  const std::vector<int64_t> cuts = cut(batch.target.sentences(), lengths_of, {max_target_tokens, max_source_tokens});
  std::vector<Batch> parts;
  for (size_t k = 0; k + 1 < cuts.size(); ++k) parts.push_back(sentences_of(batch, cuts[k], cuts[k + 1]));
  return parts;
}

Batch slice_for_rank(const Batch& batch, int index, int count, double source_weight, double target_weight) {
  CHECK(0 <= index && index < count, "part {} of {}", index, count);
  if (count == 1) return batch;
  return share_between(batch, index, index + 1, count, source_weight, target_weight);
}

Batch share_between(const Batch& batch, double from, double to, double whole, double source_weight, double target_weight) {
  const int64_t sentences = batch.target.sentences();
  const double total =
      source_weight * static_cast<double>(batch.source.count()) + target_weight * static_cast<double>(batch.target.count());
  // Sentence i belongs to the part that contains the midpoint of its cost.
  int64_t begin = sentences, end = sentences;
  double before = 0;
  for (int64_t i = 0; i < sentences; ++i) {
    const PairLengths lengths = lengths_in(batch, i);
    const double cost = source_weight * lengths.source + target_weight * lengths.target;
    const double at = (before + 0.5 * cost) / total * whole;
    if (begin == sentences && at >= from) begin = i;
    if (at >= to) {
      end = i;
      break;
    }
    before += cost;
  }
  return sentences_of(batch, begin, std::max(begin, end));
}

std::vector<Batch> split(const Batch& batch, int64_t max_target_tokens) { return split(batch, max_target_tokens, 2 * max_target_tokens); }

std::vector<Batch> make_batches(std::span<const EncodedPair> pairs, int64_t batch_tokens) {
  std::vector<int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto lengths_of_pair = [&](int64_t i) {
    const EncodedPair& pair = pairs[static_cast<size_t>(i)];
    return PairLengths{static_cast<int32_t>(pair.source.size()), static_cast<int32_t>(pair.target.size())};
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const PairLengths x = lengths_of_pair(a), y = lengths_of_pair(b);
    return std::tie(x.target, x.source) < std::tie(y.target, y.source);
  });
  const auto lengths_of = [&](int64_t i) { return lengths_of_pair(order[static_cast<size_t>(i)]); };
  const std::vector<int64_t> cuts = cut(static_cast<int64_t>(pairs.size()), lengths_of, limits_of(batch_tokens, 2));
  std::vector<Batch> batches;
  for (size_t k = 0; k + 1 < cuts.size(); ++k) {
    Batch& batch = batches.emplace_back();
    batch.index = static_cast<int64_t>(k);
    for (int64_t i = cuts[k]; i < cuts[k + 1]; ++i) {
      const int64_t id = order[static_cast<size_t>(i)];
      const EncodedPair& pair = pairs[static_cast<size_t>(id)];
      batch.source.append(pair.source.data(), pair.source.data() + pair.source.size());
      batch.target.append(pair.target.data(), pair.target.data() + pair.target.size());
      batch.sample_ids.push_back(id);
    }
  }
  return batches;
}

}  // namespace starling
