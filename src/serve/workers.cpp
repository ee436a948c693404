#include "serve/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "base/start_threads.h"

namespace starling {

namespace {
constexpr int kNice = 5;
}

double serve_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Workers::Workers(const LoadedModel& model, Scheduler& scheduler, Metrics& metrics)
    : vocabularies_(model.description.vocabularies),
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
  // Translating takes all the time there is; whoever reads a request or sends an answer comes first.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  std::optional<Search> search;
  for (;;) {
    if (!search) search.emplace(model);
    Scheduler::Work work = scheduler_.take(worker, search->rows(), serve_seconds, search->empty());
    if (work.stop) return;
    try {
      step(*search, std::move(work));
    } catch (const std::exception& e) {  // scores that are no numbers, no memory: those sentences are lost, the others are not
      scheduler_.fail(worker, e.what());
      search.reset();
    }
  }
}

void Workers::step(Search& search, Scheduler::Work work) {
  for (const int64_t key : work.drop) search.drop(key);
  for (Scheduler::Sentence& s : work.join) {
    std::vector<int32_t> source = vocabularies_.source().encode(s.text);
    if (source.empty()) {
      scheduler_.finish(s.key, {{"", {}}});
      continue;
    }
    source.push_back(vocabularies_.source().eos());
    metrics_.count("starling_tokens_total", "side=\"source\"", static_cast<double>(source.size()));
    search.add(s.key, std::move(source), s.options);
  }
  if (search.empty()) return;
  metrics_.observe("starling_batch_rows", "", static_cast<double>(search.rows()));
  for (Search::Finished& f : search.step()) {
    Candidates candidates;
    for (Hypothesis& h : f.hypotheses) candidates.push_back({vocabularies_.target().decode(h.tokens), std::move(h)});
    metrics_.count("starling_tokens_total", "side=\"target\"",
                   static_cast<double>(candidates.empty() ? 0 : candidates.front().hypothesis.length));
    scheduler_.finish(f.key, std::move(candidates));
  }
}

}  // namespace starling
