#include "decode/translator.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "base/memory.h"
#include "decode/search_need.h"

namespace starling {

Translator::Translator(Model& model, const Vocabularies& vocabularies, const SearchOptions& options, int64_t batch_sentences,
                       int64_t max_source_tokens)
    : vocabularies_(vocabularies), options_(options), batch_sentences_(batch_sentences), max_source_tokens_(max_source_tokens) {
  Backend& backend = model.parameters().backend();
  if (backend.activation() != DType::f64) {
    for (int i = 0; i < backend.threads(); ++i) {
      Worker w;
      w.backend = make_backend(backend.activation() == DType::bf16 ? "cpu:bf16" : "cpu:f32", 1);
      w.model = share_model(model, *w.backend);
      workers_.push_back(std::move(w));
    }
  } else {
    workers_.push_back({nullptr, share_model(model, backend), {}});
  }
}

void Translator::translate_batch(Worker& worker, std::span<const size_t> which, std::span<const std::vector<int32_t>> sources,
                                 std::vector<std::vector<Translation>>& results) const {
  std::vector<std::vector<int32_t>> batch;
  for (size_t i : which) batch.push_back(sources[i]);
  const auto found = beam_search(*worker.model, vocabularies_.sizes(), batch, options_, &worker.work);
  for (size_t i = 0; i < which.size(); ++i) {
    auto& result = results[which[i]];
    result.clear();
    for (const Hypothesis& h : found[i]) result.push_back({vocabularies_.target().decode(h.tokens), h.log_probability, h.score, h.length});
  }
}

void Translator::require_memory_for(std::span<const std::span<const size_t>> batches, std::span<const std::vector<int32_t>> sources) {
  std::vector<SearchNeed> needs;
  int64_t sentences = 0, sum = 0;
  Model& model = *workers_.front().model;
  for (const auto& batch : batches) {
    int64_t tokens = 0;
    for (const size_t i : batch) tokens += static_cast<int64_t>(sources[i].size());
    needs.push_back(search_need(model.config(), model.vocabulary(), options_, static_cast<int64_t>(batch.size()), tokens,
                                size_of(model.parameters().backend().activation())));
    sentences = std::max(sentences, static_cast<int64_t>(batch.size()));
  }
  const size_t together = std::min(workers_.size(), needs.size());
  std::partial_sort(needs.begin(), needs.begin() + static_cast<ptrdiff_t>(together), needs.end(),
                    [](const SearchNeed& a, const SearchNeed& b) { return a.total() > b.total(); });
  for (size_t i = 0; i < together; ++i) sum += needs[i].total();
  if (sum <= granted_) return;
  UsableMemory memory = usable_memory();
  memory.bytes += granted_;
  require_memory(std::span(needs).first(together), options_, sentences, memory);
  granted_ = sum;
}

std::vector<std::vector<int32_t>> Translator::encode(std::span<const std::string> lines) {
  const Vocabulary& from = vocabularies_.source();
  std::vector<std::vector<int32_t>> sources(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    sources[i] = from.encode(lines[i]);
    if (sources[i].empty()) continue;
    if (static_cast<int64_t>(sources[i].size()) > max_source_tokens_) sources[i].resize(max_source_tokens_), ++truncated_;
    sources[i].push_back(from.eos());
  }
  return sources;
}

SearchWork Translator::work() const {
  SearchWork sum;
  for (const Worker& w : workers_) sum.steps += w.work.steps, sum.rows += w.work.rows;
  return sum;
}

std::vector<std::vector<Translation>> Translator::translate_encoded(std::span<const std::vector<int32_t>> sources) {
  std::vector<size_t> order;
  for (size_t i = 0; i < sources.size(); ++i)
    if (!sources[i].empty()) order.push_back(i);
  // Longest first: memory peaks at the start, and the short ones fill the end.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });

  std::vector<std::vector<Translation>> results(sources.size(), std::vector<Translation>(1));
  std::vector<std::span<const size_t>> batches;
  for (size_t begin = 0; begin < order.size();) {
    // A batch is bounded in tokens too, so that a few very long sentences do not cost the memory of many.
    size_t end = begin;
    const size_t longest = sources[order[begin]].size();
    while (end < order.size() && end - begin < static_cast<size_t>(batch_sentences_) &&
           (end == begin || (end - begin + 1) * longest <= 16384))
      ++end;
    batches.push_back(std::span(order).subspan(begin, end - begin));
    begin = end;
  }

  require_memory_for(batches, sources);
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> errors(workers_.size());
  const auto work = [&](size_t worker) {
    try {
      for (size_t b = next++; b < batches.size(); b = next++) translate_batch(workers_[worker], batches[b], sources, results);
    } catch (...) {
      errors[worker] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t w = 1; w < std::min(workers_.size(), batches.size()); ++w) threads.emplace_back(work, w);
  work(0);
  for (std::thread& t : threads) t.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  for (size_t i : order) output_tokens_ += results[i].front().tokens;
  return results;
}

}  // namespace starling
