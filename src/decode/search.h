// Beam search over any model, for many sentences at once. Each sentence has its own options and may join and leave while others are in
// progress; its result does not depend on the others, bit for bit. The place of a hypothesis that ends goes to the next best continuation,
// and a sentence is done when no live hypothesis can enter its n-best list any more, or `patience` times the beam have ended.
// Hypotheses are ranked by GNMT's score (Wu et al. 2016, section 7), (log P - w |Y|) / lp(Y) + cp(X, Y), with a word penalty w (Marian's),
// a length penalty and a coverage penalty:
//   lp(Y) = ((5 + |Y|) / 6)^alpha, or |Y|^alpha as in Marian
//   cp(X, Y) = beta * sum_i log(min(max(sum_j p_ij, floor), 1)) over the source tokens i
// See docs/guides/search.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/adjusted_scores.h"
#include "decode/ensemble.h"
#include "decode/forbidden_tokens.h"
#include "decode/terms.h"
#include "models/model.h"

namespace starling {

// The least attention that the coverage penalty assumes for a source token: a token that is never attended to costs beta * 9.2, not
// infinity.
constexpr double kCoverageFloor = 1e-4;

enum class LengthPenaltyForm : uint8_t { gnmt, power };
constexpr auto words(LengthPenaltyForm) { return std::array{"gnmt", "power"}; }

class Glossary;  // decode/glossary.h

struct SearchOptions {
  int64_t beam = 4;
  double length_penalty = 0.6;  // alpha; 0 = none
  LengthPenaltyForm length_penalty_form = LengthPenaltyForm::gnmt;
  double coverage_penalty = 0;     // beta; 0 = none
  double word_penalty = 0;         // nats that each target token costs; 0 = none
  double prune_threshold = 0;      // drop hypotheses more than this many nats below the best; 0 = never
  double patience = 1;             // a sentence is done when beam * patience hypotheses have ended
  bool replace_ended = true;       // else the beam is narrower by one after each hypothesis that ends, as in Marian
  double max_length_factor = 2.0;  // limit: factor * source tokens + offset target tokens, rounded up
  int64_t max_length_offset = 10;
  int64_t min_length = 1;      // pieces that show text, at least, before a translation may end
  bool allow_unknown = false;  // translations may contain the unknown symbol
  int64_t n_best = 1;          // at most the beam, or beam * patience
  bool fixed_length = false;   // never end before the limit: for speed benchmarks
  bool alignment = false;      // also compute Hypothesis::alignment
  // Pieces, with spaces between them, that stand in front of each source, and that each translation begins with and does not show.
  std::string source_prefix, target_prefix;
  std::vector<int32_t> source_prefix_ids, target_prefix_ids;  // their numbers: with_prefixes() sets them (decode/framing.h)
  int64_t shown_prefix = 0;  // the last so many tokens of the target prefix are part of the translation after all
  // Sequences of pieces that no translation contains, with " ||| " between them, and their numbers, which with_prefixes() sets as well.
  std::string suppress;
  std::vector<std::vector<int32_t>> suppress_ids;
  int64_t no_repeat_ngram = 0;  // no n-gram of this many target tokens occurs twice in a translation; 0 = off
  // Logits of tokens that a hypothesis has already are divided by this (if above 0) or multiplied (if below); 1 = off.
  double repetition_penalty = 1;
  double prefix_bias = 0;        // 0: the target prefix is forced; else the share of probability that goes to its next token while followed
  std::vector<int32_t> end_ids;  // tokens that end a translation in place of the end of sentence; empty: that
  std::vector<int32_t> blank_ids;            // pieces that show no text (a space alone): with_prefixes() sets them
  bool attention = false;                    // also compute Hypothesis::attention
  std::shared_ptr<const Glossary> glossary;  // from which TermSpeller::with_terms() takes the terms of each sentence
  // What the translation of a sentence must contain; null: nothing. If it does not by itself, it is searched for once more with this beam.
  std::shared_ptr<const Terms> terms;
  int64_t terms_beam = 0;

  static constexpr int64_t kWidestWithTerms = 12;
  // The most rows that a sentence may take.
  int64_t widest_beam() const { return std::max(beam, terms ? terms_beam : glossary ? kWidestWithTerms : 0); }
  // Both rules; the target prefix counts as part of a translation.
  ForbiddenTokens forbidden() const { return {suppress_ids, no_repeat_ngram}; }
};

template <class Visitor>
void visit(Visitor& v, SearchOptions& c) {
  v.field("beam", c.beam, "beam width", 1, 1024);
  v.field("length-penalty", c.length_penalty,
          "alpha of ((5+|Y|)/6)^alpha, which a hypothesis' log-probability is divided by; 0 = off (presets gnmt...: 0.2)", 0.0, 10.0);
  v.choice("length-penalty-form", c.length_penalty_form, "gnmt: as above; power: |Y|^alpha, as Marian's normalize");
  v.field("coverage-penalty", c.coverage_penalty,
          "beta of the penalty for source tokens that get less than 1 of attention in total; 0 = off (presets gnmt...: 0.2)", 0.0, 10.0);
  v.field("word-penalty", c.word_penalty, "nats that each target token costs before the length penalty, as in Marian; 0 = off", -100.0,
          100.0);
  v.field("prune-threshold", c.prune_threshold, "drop hypotheses more than this many nats below the best; 0 = never (presets gnmt...: 3)",
          0.0, 1000.0);
  v.field("patience", c.patience, "the search of a sentence ends when beam * patience of its hypotheses have ended", 0.1, 100.0);
  v.field("replace-ended", c.replace_ended,
          "the place of a hypothesis that ends goes to the next best continuation; otherwise the beam shrinks, as in Marian");
  v.field("max-length-factor", c.max_length_factor, "a translation has at most factor * source tokens + offset tokens, rounded up", 0.0,
          100.0);
  v.field("max-length-offset", c.max_length_offset, "the offset of max-length-factor, tokens", 0, 100000);
  v.field("min-length", c.min_length, "a translation has at least this many pieces that show text", 0, 100000);
  v.field("source-prefix", c.source_prefix,
          "pieces, separated by spaces, that are put in front of each source, such as a language tag; empty = none");
  v.field("target-prefix", c.target_prefix, "pieces that each translation is made to begin with, and that are not printed; empty = none");
  v.field("prefix-bias", c.prefix_bias,
          "makes target-prefix a preference that is part of the translation: the share of probability that its next piece gets while a "
          "translation follows it; 0 = translations must begin with it",
          0.0, 0.999999);
  v.field("suppress", c.suppress,
          "pieces, or sequences of pieces separated by spaces, that translations never contain; several are separated by ' ||| '; "
          "empty = none");
  v.field("no-repeat-ngram", c.no_repeat_ngram, "no sequence of this many pieces occurs twice in a translation; 0 = off", 0, 1000);
  v.field("repetition-penalty", c.repetition_penalty,
          "logits of pieces that a translation already has are divided by this (multiplied if negative); 1 = off", 0.01, 1000.0);
  v.field("allow-unknown", c.allow_unknown, "translations may have the unknown symbol (U+2047) in them; else the next best piece is taken");
}

// Returns the published search settings of a model's family, by preset: for GNMT alpha 0.2, beta 0.2 and threshold 3 (Wu et al. 2016,
// section 7), otherwise the Transformer's alpha 0.6 alone (Vaswani et al. 2017, section 6.1). The rest are the defaults above.
SearchOptions search_defaults(const std::string& preset);

// Returns how many of a hypothesis' best continuations a step examines: the beam, plus the number of tokens among them that end it or are
// always forbidden. Tokens that are forbidden after a certain prefix come on top where there are any.
int64_t continuations(const SearchOptions& options, const ModelVocabulary& vocabulary);

// Returns the most target tokens, including the end of sentence, of a translation of `source_tokens` tokens.
int64_t length_limit(double factor, int64_t offset, double source_tokens);

struct Hypothesis {
  std::vector<int32_t> tokens;  // without end of sentence, and without the prefix except for what is shown of it
  int64_t length = 0;           // number of tokens, including the end of sentence unless it was cut at the limit, without the prefix
  double log_probability = 0;   // sum over the tokens, nats
  double score = 0;             // with length and coverage penalties: hypotheses are ranked by it
  int32_t end = -1;             // the token that ended it; -1: it was cut at the limit
  int missing_terms = 0;        // of SearchOptions::terms; fewer come first
  std::vector<float> log_probabilities;  // of each token, and of the one that ended it, nats; 0 for those of the prefix
  // If requested: by target token, including the end of sentence, the source token with the most attention when it was predicted.
  std::vector<int32_t> alignment;
  // If requested: by target token, including the whole prefix and the end of sentence, the attention to each source token (of the text and
  // its end).
  std::vector<std::vector<float>> attention;
};

struct SearchPrefix;  // a node of the tree of hypotheses (decode/search_sentence.h)

// A token of a translation in progress, as a search with a beam of 1 finds it.
struct StepToken {
  int32_t token = 0;           // or the one that ends the sentence
  double log_probability = 0;  // nats
  bool last = false;           // the translation ends with it
};
// Called with each token; returns whether to go on.
using OnToken = std::function<bool(const StepToken&)>;

// The work of a search: a measure of its cost that other load on the machine does not affect.
struct SearchWork {
  int64_t steps = 0, rows = 0;  // calls of Model::next_output, and hypotheses extended by them
};

// A search in progress, for use by one thread. With a sharded model, all workers make the same calls.
class Search {
 public:
  // With `others`, an ensemble: log-probabilities are the mean of those of all models, renormalised, with the `weights` of all models if
  // they are given, which sum to 1. The models have one target vocabulary and one backend; attention, for alignments and coverage, is the
  // first one's. None of them may be sharded, and all sentences must join before the first step.
  explicit Search(Model& model, std::vector<Model*> others = {}, std::vector<double> weights = {});
  ~Search();

  // Adds a source (token ids ending with end of sentence), which joins at the next step. `key` identifies it in step() and drop(), and must
  // differ from those of all sentences in progress. `for_others`: the same source in the tokens of each other model. `on_token`, for a beam
  // of 1, is called within step(); if it returns false, the translation ends there.
  void add(int64_t key, std::vector<int32_t> source, const SearchOptions& options, std::vector<std::vector<int32_t>> for_others = {},
           OnToken on_token = {});
  // Drops a sentence. A key that is not in progress is ignored.
  void drop(int64_t key);

  struct Finished {
    int64_t key = 0;
    std::vector<Hypothesis> hypotheses;  // the n_best, best first; fewer if pruning left fewer, or fewer are possible
  };
  // Encodes the sentences that have joined, extends all hypotheses by a token, and returns the sentences that have ended. Throws DataError
  // if scores are NaN; the search must not be used afterwards.
  std::vector<Finished> step();

  // Returns the number of hypotheses that the next step extends, counting the whole beam for joining sentences.
  int64_t rows() const;
  bool empty() const { return joining_.empty() && sentences_.empty(); }
  const SearchWork& work() const { return work_; }  // so far
  // Memory for sources and prefixes: for as many as were in progress at once, not for all so far.
  int64_t bytes() const;

 private:
  struct Joining;
  struct Sentence;
  struct Live;
  // The best continuation of a hypothesis that has not been taken yet. The highest log-probability comes first, then the earlier
  // hypothesis.
  struct Candidate {
    double log_probability;
    int32_t live;  // index into Sentence::live
    int32_t rank;  // among the continuations of that hypothesis
    bool operator<(const Candidate& b) const {
      return log_probability != b.log_probability ? log_probability < b.log_probability : live > b.live;
    }
  };

  void join();
  void forget(const Sentence& s);
  OutputProduct next_output();
  void find_forbidden();
  void find_best(const OutputProduct& output);
  void adjust(const OutputProduct& output);
  bool ends(const Sentence& s, int32_t token) const;
  bool allowed(const Sentence& s, const Live& live, int32_t token) const;
  void find_term_scores(const OutputProduct& output);
  void choose_with_terms(Sentence& s);
  void offer(const Sentence& s, int32_t live, int32_t rank);
  void choose(Sentence& s);
  void force(Sentence& s);
  void take(Sentence& s, const Live& from, int32_t token, double log_probability, bool end);
  void finish(Sentence& s, const Live& from, const SearchPrefix* end);
  void tell_token(Sentence& s);

  struct Other {
    Model* model;
    std::unique_ptr<DecodeState> state;
  };
  Model& model_;
  VocabularyShard shard_;
  std::unique_ptr<DecodeState> state_;
  std::vector<Other> others_;                 // of an ensemble
  std::vector<double> weights_;               // likewise
  std::vector<OutputProduct> other_outputs_;  // of the last step
  EnsembleScores ensemble_;
  std::vector<Joining> joining_;
  std::vector<Sentence> sentences_;  // in the order of their numbers in state_
  SearchWork work_;
  std::vector<int32_t> token_, sentence_, parent_;  // by row of the step
  int64_t k_ = 0;                                   // continuations examined per row
  std::vector<float> values_;                       // [rows, k] of the last step, descending
  std::vector<int32_t> indices_;                    // [rows, k]
  // The tokens forbidden after each row's prefix: row r's are forbidden_[forbidden_begin_[r]] to forbidden_[forbidden_begin_[r + 1]].
  // Both are empty if no sentence has rules that depend on the prefix.
  std::vector<int32_t> forbidden_, forbidden_begin_;
  std::vector<RowAdjustment> adjustments_;
  // The tokens that bring each row nearer to its terms, with their log-probabilities; empty for rows without terms.
  std::vector<std::vector<std::pair<int32_t, float>>> term_scores_;
  std::vector<Candidate> heap_;
  std::vector<Live> next_;
};

}  // namespace starling
