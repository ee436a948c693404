// The threads that translate: each takes sentences from the scheduler, searches with its own view of the model, and gives back text.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "decode/model_directory.h"
#include "decode/translator.h"
#include "serve/scheduler.h"

namespace starling {

// Searches for translations of sentences that join and leave (as decode/search.h), named by keys.
class SentenceSearch {
 public:
  virtual ~SentenceSearch() = default;
  virtual void add(int64_t key, std::vector<int32_t> source, const SearchOptions& options) = 0;
  virtual void drop(int64_t key) = 0;  // an unknown key is fine
  struct Finished {
    int64_t key;
    std::vector<Hypothesis> hypotheses;
  };
  virtual std::vector<Finished> step() = 0;
  virtual int64_t rows() const = 0;
};

// What was added is translated to its end in one step, all sentences with the same options as one batch.
class WholeBatches : public SentenceSearch {
 public:
  WholeBatches(Model& model, const ModelVocabulary& vocabulary) : model_(model), vocabulary_(vocabulary) {}
  void add(int64_t key, std::vector<int32_t> source, const SearchOptions& options) override;
  void drop(int64_t) override {}  // nothing is under way between steps
  std::vector<Finished> step() override;
  int64_t rows() const override { return rows_; }

 private:
  struct Sentence {
    int64_t key;
    std::vector<int32_t> source;
    SearchOptions options;
  };
  Model& model_;
  ModelVocabulary vocabulary_;
  std::vector<Sentence> sentences_;
  int64_t rows_ = 0;
};

class Workers {
 public:
  // One worker for each thread of the model's backend. The model, the scheduler and the metrics must outlive them.
  Workers(const LoadedModel& model, int64_t max_source_tokens, Scheduler& scheduler, Metrics& metrics);
  // Closes the scheduler and waits until all is translated.
  ~Workers();

 private:
  void work(int worker, Model& model);
  void join_and_step(int worker, SentenceSearch& search, Scheduler::Work work);

  const Vocabularies& vocabularies_;
  int64_t max_source_tokens_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  WorkerBackends backends_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::thread> threads_;
};

// Seconds of a clock that only goes forward.
double serve_seconds();

}  // namespace starling
