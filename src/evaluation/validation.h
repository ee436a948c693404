// Validation: the cross-entropy of the references, and text metrics of one decoding. Several ranks share the work.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/range.h"
#include "base/task_progress.h"
#include "comm/communicator.h"
#include "comm/mesh.h"
#include "data/tokenize.h"
#include "decode/translator.h"
#include "metrics/tokenizer_choice.h"
#include "settings/config.h"

namespace starling {

// Parallel sentences to measure on, as text and as tokens. The memory of attention grows quadratically with the length, so tokens are
// truncated as in the translator: sides of more than 1,000 tokens keep their first 999 and end of sentence. `tag` stands in front of each
// source.
struct ParallelSentences {
  std::vector<std::string> sources, references;
  std::vector<EncodedPair> pairs;
  int64_t truncated = 0;  // sides that were cut
};
ParallelSentences read_sentences(const std::string& source, const std::string& target, const Vocabularies& vocabularies,
                                 std::span<const int32_t> tag = {});

struct CrossEntropy {
  double nll = 0;  // negative log-likelihood in nats, summed over all tokens
  int64_t tokens = 0;
  double per_token() const { return nll / static_cast<double>(std::max<int64_t>(tokens, 1)); }
};

// Computes the cross-entropy of every step-th batch from `first` on, without label smoothing. Before each batch it calls `look`, if given,
// with the share that is done; `look` returns whether to continue.
CrossEntropy cross_entropy(Model& model, std::span<const Batch> batches, size_t first = 0, size_t step = 1,
                           const std::function<bool(double share)>& look = {});

// The role of one rank of a run in validation.
struct ValidatorRank {
  bool scores = true;              // rank 0; the others choose no tokenizer
  std::string_view japanese = {};  // see choose_tokenizer
  int processes = 1;               // processes of the run on this host, which translate at the same time
  std::function<UsableMemory()> usable = [] { return usable_memory(); };
  TaskScreen screen = {};                                     // where the progress of long validations is shown
  std::function<bool()> stop = {};                            // returns whether to give up; called often, by several threads
  std::string directory = {};                                 // where translations are kept and scripts find them
  std::function<int64_t()> step = [] { return int64_t{0}; };  // the update whose model is validated
};

class Validator {
 public:
  // Reads and encodes the validation files; throws DataError with file:line if they are invalid, ConfigError for a tag that the vocabulary
  // does not have, and whatever choose_tokenizer throws.
  Validator(const ValidConfig& config, const Vocabularies& vocabularies, const ValidatorRank& rank = {});

  using Scores = std::vector<std::pair<std::string, double>>;  // metric and value, in the order of config.metrics
  struct Result {
    Scores scores;                                        // of several texts, their means
    std::vector<std::pair<std::string, Scores>> by_text;  // of each of several texts: "en:de valid.en"
    double length_ratio = -1;  // of the translations, as in MetricScore; -1 if BLEU is not measured, and on all ranks but 0
    double seconds = 0;
    std::vector<std::string> complaints;  // what did not work, for people
    std::string example;                  // a source, its translation and the reference, to look at
    bool stopped = false;                 // a rank was asked to give up: there are no scores; the same on all ranks
  };
  // Must be called by all ranks that translate, with equal models or shards of them. Each replica scores and translates its share of the
  // sentences; rank 0 gets the result. `name` begins the progress lines. Backends of the searches, with the code that they have generated
  // for matrix products, are reused by later calls.
  Result run(Model& model, Communicator& comm, const std::string& name = "validation");
  // The same for a model in stages, for which only the cross-entropy is measured; all ranks call it and get the result.
  Result run_in_stages(Model& part, const Mesh& mesh) const;
  // Returns whether any metric needs translations.
  bool translates() const;
  int64_t truncated() const { return truncated_; }  // sentences cut at 1,000 tokens
  // Returns the tokenizers of the texts, each once, with commas between them; "" if no metric depends on them.
  std::string tokenizer() const;
  // Returns what people should know about their choice, a line each.
  std::vector<std::string> notices() const;

 private:
  // One of the texts: consecutive sentences and batches.
  struct Text {
    std::string name;
    SearchOptions search;  // with the text's tag
    Range sentences, batches;
    std::optional<TokenizerChoice> tokenizer;
  };
  void read(const ValidSet& set, const ValidatorRank& rank);
  // Appends a metric's values for the texts to the result.
  void add(Result& result, const std::string& metric, const std::vector<double>& values) const;

  std::string shown_sentences() const;
  // Writes the translations to a file, and lets valid.script score them. Returns false if that was interrupted.
  bool keep_and_score(const std::vector<std::string>& translations, Result& result);

  // Return nullopt if a rank was asked to give up; the cross-entropy of each text.
  std::optional<std::vector<double>> cross_entropy(Model& model, Communicator& comm, TaskProgress& progress) const;
  std::optional<std::vector<std::string>> translate(Model& model, Communicator& comm, TaskProgress& progress);
  bool asked_to_stop(Model& model) const;
  double all_seconds() const;

  ValidConfig config_;
  const Vocabularies& vocabularies_;
  int processes_;
  std::function<UsableMemory()> usable_;
  TaskScreen screen_;
  std::function<bool()> stop_;
  std::string directory_;
  std::function<int64_t()> step_;
  double entropy_seconds_ = 1, translation_seconds_ = 9;  // in the last run; initially a guess of their ratio
  double begun_ = 0;                                      // sum of these for the parts already done, during a run
  std::vector<Text> texts_;
  std::vector<std::string> sources_, references_;
  std::vector<Batch> batches_;
  std::optional<std::tuple<DType, int, const Memory*>> made_for_;  // activations, threads and memory of the backend of workers_
  WorkerBackends workers_;
  int64_t truncated_ = 0;
  bool shown_ = false;  // shown_sentences() have been written
};

// Throws as bleu_tokenizer_from does if a metric needs a tokenizer that cannot be opened. Called at the start, long before there is a
// Validator.
void require_tokenizer(const ValidConfig& config);

// Throws DataError unless there are sentences to validate on.
void require_sentences(const ValidSet& set, int64_t sentences);

}  // namespace starling
