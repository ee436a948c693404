#include "decode/translator.h"

#include <algorithm>
#include <numeric>

namespace starling {

Translator::Translator(Model& model, const Vocabularies& vocabularies, const SearchOptions& options, int64_t batch_sentences,
                       int64_t max_source_tokens)
    : model_(model), vocabularies_(vocabularies), options_(options), batch_sentences_(batch_sentences), max_source_tokens_(max_source_tokens) {}

std::vector<std::vector<Translation>> Translator::translate(std::span<const std::string> lines) {
  const Vocabulary &from = vocabularies_.source(), &to = vocabularies_.target();
  std::vector<std::vector<int32_t>> sources(lines.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < lines.size(); ++i) {
    sources[i] = from.encode(lines[i]);
    if (sources[i].empty()) continue;
    if (static_cast<int64_t>(sources[i].size()) > max_source_tokens_) sources[i].resize(max_source_tokens_), ++truncated_;
    sources[i].push_back(from.eos());
    order.push_back(i);
  }
  // Longest first: memory peaks at the start, and the short ones fill the end.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });

  std::vector<std::vector<Translation>> results(lines.size(), std::vector<Translation>(1));
  for (size_t begin = 0; begin < order.size();) {
    // A batch is bounded in tokens too, so that a few very long sentences do not cost the memory of many.
    size_t end = begin;
    const size_t longest = sources[order[begin]].size();
    while (end < order.size() && end - begin < static_cast<size_t>(batch_sentences_) && (end == begin || (end - begin + 1) * longest <= 16384)) ++end;
    std::vector<std::vector<int32_t>> batch;
    for (size_t i = begin; i < end; ++i) batch.push_back(sources[order[i]]);
    const auto found = beam_search(model_, vocabularies_.sizes(), batch, options_);
    for (size_t i = begin; i < end; ++i) {
      auto& result = results[order[i]];
      result.clear();
      for (const Hypothesis& h : found[i - begin])
        result.push_back({to.decode(h.tokens), h.log_probability, h.score, static_cast<int64_t>(h.tokens.size()) + 1});
      output_tokens_ += result.front().tokens;
    }
    begin = end;
  }
  return results;
}

}  // namespace starling
