#include "evaluation/pair_scores.h"

#include <limits>

#include "data/tokenize.h"

namespace starling {

EncodedPair framed_pair(const Vocabularies& v, std::string_view source, std::string_view target, const SearchOptions& options) {
  EncodedPair pair = encode_pair(v.source(), v.target(), source, target, options.source_prefix_ids);
  pair.target.insert(pair.target.begin(), options.target_prefix_ids.begin(), options.target_prefix_ids.end());
  return pair;
}

EncodedPair framed_pair_of_pieces(const Vocabularies& v, std::string_view source, std::string_view target, const SearchOptions& options) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  bool cut = false;
  SearchOptions of_target;
  of_target.source_prefix_ids = options.target_prefix_ids;
  EncodedPair pair{source_of_pieces(source, v.source(), options, kAll, cut), source_of_pieces(target, v.target(), of_target, kAll, cut)};
  if (pair.source.empty()) pair.source = {v.source().eos()};
  if (pair.target.empty()) {
    pair.target = options.target_prefix_ids;
    pair.target.push_back(v.target().eos());
  }
  return pair;
}

std::vector<std::vector<float>> pair_scores(Model& model, std::span<const EncodedPair> pairs, const SearchOptions& options,
                                            int64_t batch_tokens, const std::function<void(int64_t pairs)>& scored) {
  std::vector<std::vector<float>> scores(pairs.size());
  if (pairs.empty()) return scores;
  const auto given = static_cast<int32_t>(options.target_prefix_ids.size());
  Arena arena(model.parameters().backend().memory());
  int64_t done = 0;
  for (const Batch& batch : make_batches(pairs, batch_tokens)) {
    arena.release({});
    Tape tape(model.parameters(), arena);
    const std::vector<float> nll = model.loss(tape, batch, 0.0).read_nll();
    for (int64_t b = 0; b < batch.target.sentences(); ++b)
      for (int32_t i = batch.target.offsets[b] + given; i < batch.target.offsets[b + 1]; ++i)
        scores[batch.sample_ids[b]].push_back(-nll[i]);
    done += batch.target.sentences();
    if (scored) scored(done);
  }
  return scores;
}

}  // namespace starling
