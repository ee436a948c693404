// Raw text in, raw text out: encoding, batches of similar length, beam search, decoding, order restored.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "decode/model_directory.h"
#include "decode/search_need.h"

namespace starling {

struct Translation {
  std::string text;
  double log_probability = 0;  // nats
  double score = 0;            // with the penalties
  int64_t tokens = 0;          // produced, end of sentence included
  Hypothesis hypothesis = {};  // with SearchOptions::alignment
};

// What searches may take of the memory that this host has left.
struct SearchMemory {
  int processes = 1;           // that translate at the same time on this host, and each take as much
  bool fewer_at_once = false;  // batches are halved until they fit: slower, but the same; else what does not fit is refused
  std::function<UsableMemory()> usable = [] { return usable_memory(); };
};

// Ends a translation whose watch asked for that.
struct TranslationStopped {};

// How a translation is going; each part may be empty.
struct TranslatorWatch {
  std::function<bool()> stop;  // whether to end by TranslationStopped: asked at every step of a search, by several threads
  // Of the call's source tokens, 0 to 1: at every step of a search, where it is estimated, and after each batch; by one thread at a time.
  std::function<void(double share)> translated;
};

// The workers' backends, which keep the products that they have made: for translators that follow each other.
using WorkerBackends = std::vector<std::unique_ptr<Backend>>;
// As many siblings as the backend has threads.
WorkerBackends make_worker_backends(const Backend& backend);

class Translator {
 public:
  // Batches are dealt to as many workers as the model's backend has threads, each with one thread and all with the same weights in
  // memory: small matrix products run better side by side than cut in two. The model, which must not change meanwhile, and the
  // vocabularies must outlive the translator; so must `backends`, made for the model's backend, which nobody else may use meanwhile
  // (null: the translator makes them). Of a model in shards all workers of the group make the same calls with the same lines, each with one
  // worker that has all threads.
  Translator(Model& model, const Vocabularies& vocabularies, const SearchOptions& options, int64_t batch_sentences = 64,
             int64_t max_source_tokens = 1000, const WorkerBackends* backends = nullptr);

  // The n_best translations of each line, best first; an empty line gives an empty translation. Longer sources than
  // max_source_tokens are cut there, and counted. ResourceError, before anything is computed, when beam and batches need more memory than
  // set_memory allows.
  std::vector<std::vector<Translation>> translate(std::span<const std::string> lines) { return translate_encoded(encode(lines)); }

  // The two halves of that, to translate the same text several times. Sources end with end of sentence; that of an empty line is empty.
  std::vector<std::vector<int32_t>> encode(std::span<const std::string> lines);
  std::vector<std::vector<Translation>> translate_encoded(std::span<const std::vector<int32_t>> sources);

  // How it searches from here on.
  void set_search(const SearchOptions& options) { options_ = options; }
  void set_memory(SearchMemory memory) { memory_ = std::move(memory); }
  void set_watch(TranslatorWatch watch) { watch_ = std::move(watch); }

  int64_t truncated() const { return truncated_; }          // lines cut so far
  int64_t output_tokens() const { return output_tokens_; }  // of the best translations so far, ends of sentences included
  SearchWork work() const;                                  // so far

 private:
  struct Worker {
    std::unique_ptr<Model> model;
    SearchWork work;
  };
  using Batches = std::vector<std::span<const size_t>>;
  // Of at most so many sentences; `order`: which sources, longest first.
  static Batches cut(std::span<const size_t> order, std::span<const std::vector<int32_t>> sources, int64_t most);
  int64_t most_sentences() const;
  UsableMemory usable();
  Batches batches_that_fit(std::span<const size_t> order, std::span<const std::vector<int32_t>> sources);
  // Of those batches that may be under way at the same time, at the most.
  std::vector<SearchNeed> largest_needs(const Batches& batches, std::span<const std::vector<int32_t>> sources);
  void stop_if_asked();
  void translate_batch(Worker& worker, std::span<const size_t> which, std::span<const std::vector<int32_t>> sources,
                       std::vector<std::vector<Translation>>& results, const std::function<void(double share)>& under_way) const;

  WorkerBackends own_;  // unless they were given
  std::vector<Worker> workers_;
  const Vocabularies& vocabularies_;
  SearchOptions options_;
  SearchMemory memory_;
  TranslatorWatch watch_;
  int64_t batch_sentences_, max_source_tokens_;
  int64_t truncated_ = 0, output_tokens_ = 0;
  int64_t granted_ = 0;  // bytes that searches have had and that the workers keep for the next
};

}  // namespace starling
