#include "batching/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <limits>
#include <optional>

#include "base/start_threads.h"
#include "decode/framing.h"

namespace starling {

namespace {
thread_local bool is_worker = false;
constexpr double kLengthyShare = 1.0 / 3;  // time of lengthy sentences relative to that of ordinary ones, while there are both
}  // namespace

double serve_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The searches of a thread, and the choice between them.
class Workers::Searches {
 public:
  explicit Searches(Model& model) : model_(model) { reset(); }
  void reset() {
    for (auto& search : lanes_) search.emplace(model_);
  }
  Search& of(Scheduler::Lane lane) { return *lanes_[lane]; }
  Scheduler::Rows rows() const { return {lanes_[Scheduler::ordinary]->rows(), lanes_[Scheduler::lengthy]->rows()}; }
  bool empty() const { return lanes_[Scheduler::ordinary]->empty() && lanes_[Scheduler::lengthy]->empty(); }
  void drop(int64_t key) {
    for (auto& search : lanes_) search->drop(key);
  }
  // Returns the lane that makes the next step. A lengthy step is due when the lengthy lane's credit covers the time of its last step.
  Scheduler::Lane next() const {
    if (lanes_[Scheduler::lengthy]->empty()) return Scheduler::ordinary;
    return lanes_[Scheduler::ordinary]->empty() || credit_ >= last_lengthy_ ? Scheduler::lengthy : Scheduler::ordinary;
  }
  void made_step(Scheduler::Lane lane, double seconds) {
    if (lane == Scheduler::lengthy)
      last_lengthy_ = seconds, credit_ = 0;
    else if (!lanes_[Scheduler::lengthy]->empty())
      credit_ += kLengthyShare * seconds;
  }

 private:
  Model& model_;
  std::array<std::optional<Search>, Scheduler::kLanes> lanes_;
  double credit_ = 0, last_lengthy_ = 0;  // seconds
};

Workers::Workers(const LoadedModel& model, Scheduler& scheduler, BatchingEvents& events, int nice)
    : vocabularies_(model.description.vocabularies),
      scheduler_(scheduler),
      events_(events),
      nice_(nice),
      backends_(make_worker_backends(*model.backend)) {
  for (const auto& backend : backends_) models_.push_back(share_model(*model.model, *backend));
  try {
    for (size_t i = 0; i < models_.size(); ++i)
      threads_.push_back(start_thread("translating", [this, i] { work(static_cast<int>(i), *models_[i]); }));
  } catch (const Error&) {
    if (threads_.empty()) throw;  // fewer are enough
  }
}

Workers::~Workers() {
  scheduler_.close();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::is_own_thread() { return is_worker; }

void Workers::work(int worker, Model& model) {
  is_worker = true;
  if (nice_ > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_);
  Searches searches(model);
  for (;;) {
    Scheduler::Work work = scheduler_.take(worker, searches.rows(), serve_seconds, searches.empty());
    if (work.stop) return;
    try {
      join(searches, std::move(work));
      const Scheduler::Lane lane = searches.next();
      const double begin = serve_seconds();
      step(searches.of(lane));
      searches.made_step(lane, serve_seconds() - begin);
    } catch (const std::exception& e) {  // NaN scores or lack of memory: only these sentences are lost
      scheduler_.fail(worker, e.what(), std::current_exception());
      searches.reset();
    }
  }
}

void Workers::join(Searches& searches, Scheduler::Work work) {
  for (const int64_t key : work.drop) searches.drop(key);
  for (Scheduler::Sentence& s : work.join) {
    bool cut = false;
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    std::vector<int32_t> source = s.form == SentenceForm::pieces ? source_of_pieces(s.text, vocabularies_.source(), s.options, kAll, cut)
                                                                 : source_tokens(s.text, vocabularies_.source(), s.options, kAll, cut);
    if (source.empty()) {
      scheduler_.finish(s.key, {{"", {}}});
      continue;
    }
    events_.count("starling_tokens_total", "side=\"source\"", static_cast<double>(source.size()));
    SearchOptions options = options_for(source, vocabularies_.source(), s.options);
    if (options.glossary && s.form == SentenceForm::text) options = speller().with_terms(std::move(options), s.text);
    if (options.terms) s.on_token = {};  // it may be searched for twice
    searches.of(s.lane).add(s.key, std::move(source), options, {}, std::move(s.on_token));
  }
}

const TermSpeller& Workers::speller() {
  std::call_once(asked_for_terms_, [this] { speller_.emplace(vocabularies_.target()); });
  return *speller_;
}

void Workers::step(Search& search) {
  if (search.empty()) return;
  events_.observe("starling_batch_rows", "", static_cast<double>(search.rows()));
  for (Search::Finished& f : search.step()) {
    Candidates candidates;
    for (Hypothesis& h : f.hypotheses) candidates.push_back({vocabularies_.target().decode(h.tokens), std::move(h)});
    events_.count("starling_tokens_total", "side=\"target\"",
                  static_cast<double>(candidates.empty() ? 0 : candidates.front().hypothesis.length));
    scheduler_.finish(f.key, std::move(candidates));
  }
}

}  // namespace starling
