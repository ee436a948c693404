// Translates and scores. A translator may be used by any number of threads: the sentences of all callers are computed together, and each
// caller's result is the same, bit for bit, as if it were alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/error.h"
#include "starling/model.h"

STARLING_NAMESPACE_BEGIN

struct TranslatorOptions {
  std::string device = "auto";     // auto (a card if there is one, else the processor), cpu, cuda, cuda:1
  std::string precision = "auto";  // auto (int8 for quantised models, else bf16 where it is fast, else f32), f32, bf16, int8
  int threads = 0;                 // 0 to 4096; each translates sentences of its own; 0 = one per core
  int max_source_tokens = 1000;    // longer sources are cut there
  int rows = 256;                  // hypotheses that a thread extends at once; fewer where memory is short
  std::function<void(const std::string& line)> log;  // what takes long before the first translation, such as importing a model
};

/// Translations that are drawn from the model's distribution instead of being searched for.
struct Sampling {
  int top_k = 0;           // draw from so many most probable tokens; 0 = all
  double top_p = 1;        // and of these from the fewest that have this much of the probability
  double temperature = 1;  // below 1, probable tokens are drawn more often
  std::uint64_t seed = 1;  // equal seeds give equal translations
};

/// A token of a translation in progress.
struct Step {
  std::size_t sentence = 0;  // its index in the call
  int hypothesis = 0;        // of several samples
  std::string token;         // a piece of the target vocabulary, or the end of sentence
  int token_id = 0;
  double log_probability = 0;  // nats
  bool last = false;           // the translation ends with it
  std::string text;            // the translation so far
};

/// What is not given is the model's own setting (its decode.yml).
struct TranslateOptions {
  std::optional<int> beam;
  int n_best = 1;  // at most the beam, which is widened if it is not given
  std::optional<double> length_penalty, coverage_penalty, prune_threshold;
  std::optional<std::string> length_penalty_form;    // gnmt: ((5+|Y|)/6)^penalty; power: |Y|^penalty
  std::optional<double> max_length_factor;           // a translation has at most factor * source tokens + offset tokens
  std::optional<int> max_length_offset;              // at least 1
  std::string target_language;                       // of a model that translates into several
  std::optional<std::string> source_prefix;          // pieces, with spaces between them, in front of each source
  std::optional<std::string> target_prefix;          // pieces that each translation is made to begin with, and that are not shown
  std::optional<std::vector<std::string>> suppress;  // pieces, or sequences of them, that translations never contain
  std::optional<int> no_repeat_ngram;                // no sequence of so many pieces occurs twice; 0 = off
  std::optional<bool> allow_unknown;                 // translations may contain the unknown symbol
  bool alignment = false;                            // also find which source token each target token comes from
  std::optional<int> min_length;                     // tokens, at least, before a translation may end
  std::optional<double> patience;                    // a search ends when beam * patience hypotheses have ended
  std::optional<double> repetition_penalty;          // above 1: tokens that a translation has already become less probable
  std::optional<double> word_penalty;                // nats that each token costs
  double prefix_bias = 0;  // 0: the target prefix is forced; else how much of the probability its tokens get, and they are shown
  std::vector<std::string> end_tokens;  // pieces that end a translation in place of the end of sentence
  int max_source_tokens = 0;            // sources are cut there; 0 = at the translator's limit, which it cannot exceed
  bool attention = false;               // also Hypothesis::attention
  std::optional<Sampling> sampling;     // draw n_best translations; not by translate_async()
  // Instead of the n_best translations, one for each of the n_best tokens that may follow the target prefix, which is the first token
  // shown, in the order of their probabilities; without those of a smaller probability. Not by translate_async().
  bool alternatives = false;
  double min_alternative_probability = 0;
  // Called with each token of a translation, with a beam of 1 or samples, from the translator's threads, perhaps once more after the call
  // was given up; returns whether to go on with the translation.
  std::function<bool(const Step&)> on_token;
  // Asked some ten times a second, in the thread of the caller, by calls that wait: true gives up what they asked for, and they throw
  // ErrorKind::cancelled.
  std::function<bool()> stop;
  bool confidence = false;  // also Hypothesis::confidence and words; the model needs the calibration of `starling calibrate`
  // Terms that translations must contain: lines of a term, a tab and its translation, and further tabs and forms of it. Of text, without
  // sampling, alternatives, repetition_penalty and prefix_bias.
  std::string glossary;
};

/// A word of a translation. In scripts without spaces each token is one.
struct Word {
  std::size_t begin = 0, end = 0;  // bytes of the text
  double confidence = 0;           // the probability that a reference translation would have the word, 0 to 1
};

struct Hypothesis {
  std::string text;
  std::vector<std::string> tokens;  // its pieces, without end of sentence
  double score = 0;                 // with length and coverage penalties: hypotheses are ranked by it
  double log_probability = 0;       // nats
  // If asked for: pairs of a source and a target token, counted from 0, in ascending order.
  std::vector<std::pair<int, int>> alignment;
  std::string end;  // the token that ended it, which is not in `tokens`; empty if it was cut at the limit
  // If asked for: by token of a forced target prefix, of `tokens`, and of the end, the attention to each source token, without the end of
  // the source.
  std::vector<std::vector<float>> attention;
  std::optional<double> confidence;  // if asked for: the mean of the words
  std::vector<Word> words;           // likewise
};

struct Translation {
  std::vector<Hypothesis> hypotheses;  // best first; fewer than n_best if the search found fewer, one for an empty source
  bool truncated = false;              // the source had more than max_source_tokens
  const std::string& text() const { return hypotheses.front().text; }
};

struct Score {
  std::vector<std::string> tokens;        // of the target, the end of sentence included
  std::vector<double> log_probabilities;  // of each, nats
  double log_probability = 0;             // their sum
};

enum class Format { text, html };

/// After fork(), the child must open translators of its own: each call of its parent's throws Error there.
class STARLING_API Translator {
 public:
  /// `model`: a path as describe_model() takes it. Throws Error.
  explicit Translator(const std::string& model, const TranslatorOptions& options = {});
  /// Waits until everything that was asked for is translated.
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  /// Translates sentences of UTF-8, one result each; blank ones stay empty. Throws Error.
  std::vector<Translation> translate(const std::vector<std::string>& sentences, const TranslateOptions& options = {}) const;
  /// The best translation of a sentence.
  std::string translate(const std::string& sentence, const TranslateOptions& options = {}) const;
  /// The same for sentences that were split into pieces of the source vocabulary; pieces that it does not have are unknown to the model. An
  /// end of sentence may be given as the last one: it is read also by a model that reads none by itself.
  std::vector<Translation> translate_tokens(const std::vector<std::vector<std::string>>& sentences,
                                            const TranslateOptions& options = {}) const;
  /// Translate without waiting. Mistakes in the options are thrown at once, what goes wrong later by get().
  std::future<std::vector<Translation>> translate_async(std::vector<std::string> sentences, const TranslateOptions& options = {}) const;
  std::future<std::vector<Translation>> translate_tokens_async(const std::vector<std::vector<std::string>>& sentences,
                                                               const TranslateOptions& options = {}) const;
  /// The same with a callback, from one of the translator's threads, which should not keep it long: either translations, or an error.
  /// Returns a number for cancel().
  std::int64_t translate_async(std::vector<std::string> sentences, const TranslateOptions& options,
                               std::function<void(std::vector<Translation>, std::exception_ptr)> done) const;
  std::int64_t translate_tokens_async(const std::vector<std::vector<std::string>>& sentences, const TranslateOptions& options,
                                      std::function<void(std::vector<Translation>, std::exception_ptr)> done) const;
  /// Gives up what was asked for by that number, or by everybody: callbacks and futures get ErrorKind::cancelled.
  void cancel(std::int64_t number) const;
  void cancel() const;
  /// The number of requests that are not answered.
  std::size_t under_way() const;
  /// Translates a text of any length, keeping lines and white space, or an HTML document, keeping its markup. n_best, alignment
  /// and confidence are ignored.
  std::string translate_document(const std::string& text, Format format = Format::text, const TranslateOptions& options = {}) const;

  /// Returns the log-probabilities of given translations. `sources` and `targets` are equally many. Only the prefixes and the language of
  /// the options count. Throws Error.
  std::vector<Score> score(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                           const TranslateOptions& options = {}) const;
  /// The same for pieces of the vocabularies.
  std::vector<Score> score_tokens(const std::vector<std::vector<std::string>>& sources,
                                  const std::vector<std::vector<std::string>>& targets, const TranslateOptions& options = {}) const;

  /// Splits a sentence into pieces of the source or target vocabulary, and puts pieces of the target vocabulary together. `stop`: as in
  /// TranslateOptions, while a long text is split.
  std::vector<std::string> source_tokens(const std::string& sentence, const std::function<bool()>& stop = {}) const;
  std::vector<std::string> target_tokens(const std::string& sentence, const std::function<bool()>& stop = {}) const;
  std::string join_target_tokens(const std::vector<std::string>& tokens) const;
  /// Returns pieces of the target vocabulary with the unknown symbol in place of those that it does not have.
  std::vector<std::string> known_target_tokens(const std::vector<std::string>& tokens) const;

  const ModelInfo& model() const;
  /// What computes: "cpu, f32 activations, 2 threads, x86-64-v4".
  std::string machine() const;
  std::string device() const;     // what "auto" became: cpu, cuda:0
  std::string precision() const;  // likewise: f32, bf16, int8

 private:
  class Impl;
  Impl& here() const;  // throws Error in a child of the process that opened it, and if it was moved away
  std::unique_ptr<Impl> impl_;
};

/// The number of cards that this library can compute on.
STARLING_API int card_count();

STARLING_NAMESPACE_END
