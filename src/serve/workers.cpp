#include "serve/workers.h"

#include <algorithm>
#include <chrono>

#include "base/start_threads.h"

namespace starling {

double serve_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void WholeBatches::add(int64_t key, std::vector<int32_t> source, const SearchOptions& options) {
  rows_ += options.beam;
  sentences_.push_back({key, std::move(source), options});
}

std::vector<SentenceSearch::Finished> WholeBatches::step() {
  std::vector<Finished> finished;
  std::vector<Sentence> left = std::move(sentences_);
  sentences_.clear(), rows_ = 0;
  while (!left.empty()) {
    const std::string options = TranslationCache::key("", left.front().options);
    const auto others =
        std::stable_partition(left.begin(), left.end(), [&](const Sentence& s) { return TranslationCache::key("", s.options) == options; });
    std::stable_sort(left.begin(), others, [](const Sentence& a, const Sentence& b) { return a.source.size() > b.source.size(); });
    std::vector<std::vector<int32_t>> sources;
    for (auto s = left.begin(); s != others; ++s) sources.push_back(std::move(s->source));
    auto found = beam_search(model_, vocabulary_, sources, left.front().options);
    for (size_t i = 0; i < found.size(); ++i) finished.push_back({left[i].key, std::move(found[i])});
    left.erase(left.begin(), others);
  }
  return finished;
}

Workers::Workers(const LoadedModel& model, int64_t max_source_tokens, Scheduler& scheduler, Metrics& metrics)
    : vocabularies_(model.description.vocabularies),
      max_source_tokens_(max_source_tokens),
      scheduler_(scheduler),
      metrics_(metrics),
      backends_(make_worker_backends(*model.backend)) {
  for (const auto& backend : backends_) models_.push_back(share_model(*model.model, *backend));
  try {
    for (size_t i = 0; i < models_.size(); ++i)
      threads_.push_back(start_thread("translating", [this, i] { work(static_cast<int>(i), *models_[i]); }));
  } catch (const Error&) {
    if (threads_.empty()) throw;  // fewer will do
  }
}

Workers::~Workers() {
  scheduler_.close();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::work(int worker, Model& model) {
  std::unique_ptr<SentenceSearch> search;
  for (;;) {
    if (!search) search = std::make_unique<WholeBatches>(model, vocabularies_.sizes());
    Scheduler::Work work = scheduler_.take(worker, search->rows(), serve_seconds, true);
    if (work.stop) return;
    try {
      join_and_step(worker, *search, std::move(work));
    } catch (const std::exception& e) {  // scores that are no numbers, no memory: those sentences are lost, the others are not
      scheduler_.fail(worker, e.what());
      search.reset();
    }
  }
}

void Workers::join_and_step(int, SentenceSearch& search, Scheduler::Work work) {
  for (const int64_t key : work.drop) search.drop(key);
  for (Scheduler::Sentence& s : work.join) {
    std::vector<int32_t> source = vocabularies_.source().encode(s.text);
    if (source.empty()) {
      scheduler_.finish(s.key, {{""}});
      continue;
    }
    if (static_cast<int64_t>(source.size()) > max_source_tokens_) source.resize(static_cast<size_t>(max_source_tokens_));
    source.push_back(vocabularies_.source().eos());
    metrics_.count("starling_tokens_total", "side=\"source\"", static_cast<double>(source.size()));
    search.add(s.key, std::move(source), s.options);
  }
  if (search.rows() == 0) return;
  for (SentenceSearch::Finished& f : search.step()) {
    Candidates candidates;
    for (const Hypothesis& h : f.hypotheses) candidates.push_back({vocabularies_.target().decode(h.tokens)});
    metrics_.count("starling_tokens_total", "side=\"target\"", static_cast<double>(f.hypotheses.empty() ? 0 : f.hypotheses.front().length));
    scheduler_.finish(f.key, std::move(candidates));
  }
}

}  // namespace starling
