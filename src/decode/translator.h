// Translates raw text into raw text: encodes, batches by length, searches, decodes and restores the order.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "decode/alignment.h"
#include "decode/framing.h"
#include "decode/glossary.h"
#include "decode/sampling.h"
#include "decode/search_need.h"
#include "formats/translation_memory.h"

namespace starling {

struct Translation {
  std::string text;
  double log_probability = 0;  // nats
  double score = 0;            // with length and coverage penalties
  int64_t tokens = 0;          // tokens produced, including the end of sentence
  Hypothesis hypothesis = {};
};

// How much of this host's free memory searches may use.
struct SearchMemory {
  int processes = 1;           // processes that translate on this host at the same time with equal shares
  bool fewer_at_once = false;  // halve batches until they fit, which is slower with the same result; if false, refuse what does not fit
  std::function<UsableMemory()> usable = [] { return usable_memory(); };
};

// A further model of an ensemble. It reads sources with its own vocabulary and prefix.
struct EnsembleMember {
  Model* model;
  const Vocabularies* vocabularies;
  std::string source_prefix;
};

// Thrown to end a translation when its watch asked for it.
struct TranslationStopped {};

// Callbacks during a translation; each may be empty.
struct TranslatorWatch {
  std::function<bool()> stop;  // whether to stop by TranslationStopped: called at every search step, from several threads
  // Receives the translated fraction of the call's source tokens, 0 to 1: an estimate at every search step, and the count after each batch;
  // from one thread at a time.
  std::function<void(double share)> translated;
};

// The workers' backends, which keep their compiled products, for use by successive translators.
using WorkerBackends = std::vector<std::unique_ptr<Backend>>;
// Returns as many siblings as the backend has threads.
WorkerBackends make_worker_backends(const Backend& backend);

class Translator {
 public:
  // Distributes batches over as many workers as the model's backend has threads. Each worker has one thread, and all share the same
  // weights: small matrix products run better side by side than split in two. The model, which must not change in the meantime, and the
  // vocabularies must outlive the translator. So must `backends`, made for the model's backend and used by nobody else in the meantime;
  // null: the translator makes its own. With a sharded model, all workers of the group make the same calls with the same lines, each with
  // one worker that has all threads. `others` make an ensemble of it (decode/search.h); they must outlive the translator.
  Translator(Model& model, const Vocabularies& vocabularies, const SearchOptions& options, int64_t batch_sentences = 64,
             int64_t max_source_tokens = 1000, const WorkerBackends* backends = nullptr, std::vector<EnsembleMember> others = {});

  // Returns the n_best translations of each line, best first; an empty line gives an empty translation. Sources longer than
  // max_source_tokens are cut there, and counted. `beginnings`, if given, are the texts that the lines' translations begin with, which are
  // part of them; one of more tokens than a source or a sentence may have is cut. Throws ResourceError, before computing anything, if beam
  // and batches need more memory than set_memory allows.
  std::vector<std::vector<Translation>> translate(std::span<const std::string> lines, std::span<const std::string> beginnings = {});

  // The two halves of translate(), to translate the same text several times; not with an ensemble. Sources end with end of sentence; that
  // of an empty line is empty.
  std::vector<std::vector<int32_t>> encode(std::span<const std::string> lines);
  std::vector<std::vector<Translation>> translate_encoded(std::span<const std::vector<int32_t>> sources) {
    return translate_sources({{sources.begin(), sources.end()}}, std::span(&options_, 1));
  }

  // Returns which words or pieces of a line its translation comes from, as alignment_text() does; the options must ask for alignments or,
  // with a threshold, for attention.
  std::string alignment(std::string_view line, const Translation& translation, AlignmentUnit unit, double threshold = 0) const;
  std::vector<double> word_scores(const Translation& translation, AlignmentUnit unit) const {
    return unit_scores(translation.hypothesis, vocabularies_.target(), unit);
  }
  Confidence confidence(const Translation& translation, const ConfidenceModel& model) const {
    return model.of(translation.hypothesis, vocabularies_.target());
  }

  // Sets the search options from now on.
  void set_search(const SearchOptions& options) {
    options_ = with_prefixes(options, vocabularies_);
    tags_ = TagCheck(vocabularies_.source(), options_);
  }
  // From now on draws translations instead of searching for them: options.n_best samples of each line, in the order of their numbers, with
  // the model's log-probability as their score. Sample n of line i (lines are counted over all calls) depends only on (key, i, n) and the
  // model. The length limit and what is allowed are those of the search options, and so are prefixes. Not with a sharded model or an
  // ensemble.
  struct Sampling {
    uint64_t key = 1;
    int64_t top_k = 0;       // as in SamplingOptions
    double temperature = 1;  // as in SamplingOptions
  };
  void set_sampling(const Sampling& sampling);
  // The number of lines before the next call's, for samples, as if they had been translated.
  void set_lines_before(int64_t lines) { lines_before_ = lines; }
  // Lines that are pieces of the vocabularies, with spaces between them, in place of text.
  struct Form {
    bool source_pieces = false, target_pieces = false;
  };
  void set_form(Form form) { form_ = form; }
  // From now on translations contain the terms of a glossary that are in their sources; null: none. With one model that is not sharded.
  void set_glossary(std::shared_ptr<const Glossary> glossary);
  // From now on lines that are in a memory get its translation, without scores and alignment; null: none.
  void set_translation_memory(std::shared_ptr<const TranslationMemory> memory) { translation_memory_ = std::move(memory); }
  // From now on lines that are clearly in another language than these stay as they are (is_clearly_in_another_language()); `target`: the
  // language of translations. No languages: all lines are translated.
  void set_source_languages(std::vector<std::string> languages, std::string target) {
    source_languages_ = std::move(languages);
    target_language_ = std::move(target);
  }
  // The weights of an ensemble's models, which sum to 1.
  void set_weights(std::vector<double> weights) { weights_ = std::move(weights); }
  void set_memory(SearchMemory memory) { memory_ = std::move(memory); }
  void set_watch(TranslatorWatch watch) { watch_ = std::move(watch); }

  // Returns what is wrong with the tags of the lines so far, as TagCheck::warning() does.
  std::string tag_warning() const { return tags_.warning(); }
  // Returns what is wrong with the pieces of the lines so far, as PieceCheck::warning() does.
  std::string piece_warning() const { return pieces_.warning("--source-pieces"); }
  // The most tokens of a text that are translated, without prefix and end: fewer than asked for if the model has fewer positions.
  int64_t most_text_tokens() const { return max_source_tokens_ - static_cast<int64_t>(options_.source_prefix_ids.size()); }
  int64_t most_source_tokens() const { return max_source_tokens_; }   // with the prefix
  int64_t truncated() const { return truncated_; }                    // number of lines cut so far
  int64_t beginnings_cut() const { return beginnings_cut_; }          // number of beginnings cut so far
  int64_t from_memory() const { return from_memory_; }                // number of lines so far
  int64_t in_other_languages() const { return in_other_languages_; }  // number of lines so far
  int64_t missing_terms() const { return missing_terms_; }            // of the glossary, in the best translations so far
  int64_t output_tokens() const { return output_tokens_; }            // of the best translations so far, including ends of sentences
  SearchWork work() const;                                            // so far

 private:
  using Sources = std::vector<std::vector<int32_t>>;
  struct Worker {
    std::unique_ptr<Model> model;
    std::vector<std::unique_ptr<Model>> others;
    SearchWork work;
  };
  using Batches = std::vector<std::span<const size_t>>;
  // Cuts batches of at most `most` sentences; `order` lists the sources, longest first.
  static Batches cut(std::span<const size_t> order, std::span<const std::vector<int32_t>> sources, int64_t most);
  int64_t most_sentences() const;
  UsableMemory usable();
  // From here on `sources` are those of each model.
  Batches batches_that_fit(std::span<const size_t> order, std::span<const Sources> sources);
  SearchNeed need_of(std::span<const size_t> batch, std::span<const Sources> sources);
  // Returns the largest needs of batches that may be in progress at the same time.
  std::vector<SearchNeed> largest_needs(const Batches& batches, std::span<const Sources> sources);
  std::vector<int32_t> source_of(std::string_view line, const Vocabulary& from, const SearchOptions& options, int64_t most,
                                 bool& cut) const;
  std::vector<std::vector<Translation>> translate_lines(std::span<const std::string> lines, std::span<const std::string> beginnings);
  // Empties the lines that are in the memory or in another language, and returns their translations; null for the others.
  std::vector<const std::string*> take_known(std::span<const std::string> all, std::vector<std::string>& lines);
  std::vector<SearchOptions> with_beginnings(std::span<const std::string> beginnings);
  // Adds to the options of each line, of which there are none as long as all have the same, those of its terms.
  void add_terms(std::span<const std::string> lines, std::vector<SearchOptions>& options) const;
  // `options` are those of all sentences, or of each.
  std::vector<std::vector<Translation>> translate_sources(const std::vector<Sources>& sources, std::span<const SearchOptions> options);
  void stop_if_asked();
  void translate_batch(Worker& worker, std::span<const size_t> which, std::span<const Sources> sources,
                       std::span<const SearchOptions> options, std::vector<std::vector<Translation>>& results,
                       const std::function<void(double share)>& under_way) const;
  std::vector<std::vector<Hypothesis>> draw_batch(Worker& worker, std::span<const size_t> which,
                                                  std::span<const std::vector<int32_t>> batch,
                                                  const std::function<void()>& each_step) const;

  WorkerBackends own_;  // empty if backends were given
  std::vector<Worker> workers_;
  const Vocabularies& vocabularies_;
  const std::vector<EnsembleMember> others_;
  SearchOptions options_;
  TagCheck tags_;
  PieceCheck pieces_;
  std::optional<Sampling> sampling_;
  Form form_;
  std::optional<TermSpeller> speller_;
  std::shared_ptr<const TranslationMemory> translation_memory_;
  std::vector<std::string> source_languages_;
  std::string target_language_;
  std::vector<double> weights_;
  int64_t widest_ = 1;        // beam of the sentences under way
  int64_t lines_before_ = 0;  // of earlier calls
  SearchMemory memory_;
  TranslatorWatch watch_;
  int64_t batch_sentences_, max_source_tokens_;
  int64_t truncated_ = 0, beginnings_cut_ = 0, from_memory_ = 0, in_other_languages_ = 0, missing_terms_ = 0, output_tokens_ = 0;
  int64_t granted_ = 0;  // bytes that earlier searches used and that the workers keep for the next one
};

}  // namespace starling
