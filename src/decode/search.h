// Beam search over any model: many sentences at once, each with options of its own, that join and leave while others are under way. What
// a sentence gets does not depend on the others, bit for bit. A hypothesis that ends leaves its place in the beam, so the work shrinks; it
// is ranked by GNMT's score (Wu et al. 2016, section 7): log P / lp(Y) + cp(X, Y), with the length penalty lp(Y) = ((5 + |Y|) / 6)^alpha
// and the coverage penalty cp(X, Y) = beta * sum_i log(min(max(sum_j p_ij, floor), 1)) over the source tokens i. docs/explanation/search.md
// explains.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"

namespace starling {

// Attention that a source token has at least, in the coverage penalty: a token never looked at costs beta * 9.2, not infinity.
constexpr double kCoverageFloor = 1e-4;

struct SearchOptions {
  int64_t beam = 4;
  double length_penalty = 0.6;     // alpha; 0 = none
  double coverage_penalty = 0;     // beta; 0 = none
  double prune_threshold = 0;      // nats below the best at which hypotheses are given up; 0 = never
  double max_length_factor = 2.0;  // at most factor * source tokens + offset target tokens
  int64_t max_length_offset = 10;
  bool allow_unknown = false;  // the unknown symbol may be a token of a translation
  int64_t n_best = 1;          // at most beam
  bool fixed_length = false;   // never end before the limit: for benchmarks of speed
  bool alignment = false;      // also Hypothesis::alignment
};

template <class Visitor>
void visit(Visitor& v, SearchOptions& c) {
  v.field("beam", c.beam, "beam width", 1, 1024);
  v.field("length-penalty", c.length_penalty,
          "alpha of ((5+|Y|)/6)^alpha, which a hypothesis' log-probability is divided by; 0 = off (presets gnmt...: 0.2)", 0.0, 10.0);
  v.field("coverage-penalty", c.coverage_penalty,
          "beta of what source tokens with less than 1 of attention in all cost a hypothesis; 0 = off (presets gnmt...: 0.2)", 0.0, 10.0);
  v.field("prune-threshold", c.prune_threshold, "hypotheses so many nats below the best are given up; 0 = never (presets gnmt...: 3)", 0.0,
          1000.0);
  v.field("max-length-factor", c.max_length_factor, "a translation has at most factor * source tokens + offset tokens", 0.0, 100.0);
  v.field("max-length-offset", c.max_length_offset, "the offset of max-length-factor, tokens", 1, 100000);
  v.field("allow-unknown", c.allow_unknown, "translations may have the unknown symbol (U+2047) in them; else the next best piece is taken");
}

// The published search of a model's family, by its preset: GNMT's alpha 0.2, beta 0.2, threshold 3 (Wu et al. 2016, section 7), else the
// Transformer's alpha 0.6 without the others (Vaswani et al. 2017, section 6.1). The rest is as above.
SearchOptions search_defaults(const std::string& preset);

// The best continuations of a hypothesis that a step looks at: the beam, and as many as may be among them without being allowed.
int64_t continuations(const SearchOptions& options, const ModelVocabulary& vocabulary);

struct Hypothesis {
  std::vector<int32_t> tokens;  // without end of sentence
  int64_t length = 0;           // tokens, with the end of sentence unless it was cut at the limit
  double log_probability = 0;   // sum over these, nats
  double score = 0;             // with the penalties of length and coverage: what hypotheses are ranked by
  // If asked for: by target token, the end of sentence included, the source token with the most attention when it was predicted.
  std::vector<int32_t> alignment;
};

// What a search has computed: a measure of its cost that no other load of the machine changes.
struct SearchWork {
  int64_t steps = 0, rows = 0;  // calls of Model::next_output, and the hypotheses they extended
};

// A search under way. Of one thread; of a model in shards all workers make the same calls.
class Search {
 public:
  explicit Search(Model& model);
  ~Search();

  // A source (token ids ending with end of sentence) that joins at the next step; `key`, which no other sentence under way has, names it
  // in what step() and drop() say.
  void add(int64_t key, std::vector<int32_t> source, const SearchOptions& options);
  // Nobody waits for it any more. A key that is not under way is none.
  void drop(int64_t key);

  struct Finished {
    int64_t key = 0;
    std::vector<Hypothesis> hypotheses;  // the n_best, best first; fewer where pruning left fewer
  };
  // Encodes what has joined and extends all hypotheses by a token; gives the sentences that have ended. DataError when scores are NaN:
  // the search is of no more use then.
  std::vector<Finished> step();

  // Hypotheses that the next step extends, those of sentences that join counted as their whole beams.
  int64_t rows() const;
  bool empty() const { return joining_.empty() && sentences_.empty(); }
  const SearchWork& work() const { return work_; }  // so far
  // Of memory for sources and prefixes: of those that were under way at once, not of all that there have been.
  int64_t bytes() const { return state_->bytes(); }

 private:
  struct Joining;
  struct Sentence;
  struct Live;
  // The best continuation of a hypothesis that has not been taken yet; the highest log-probability comes first, then the earlier
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
  OutputProduct next_output();
  void find_best(const OutputProduct& output);
  bool allowed(const Sentence& s, int32_t token) const;
  void offer(const Sentence& s, int32_t live, int32_t rank);
  void choose(Sentence& s);
  void finish(Sentence& s, int32_t prefix, int32_t row, double log_probability);

  Model& model_;
  VocabularyShard shard_;
  std::unique_ptr<DecodeState> state_;
  std::vector<Joining> joining_;
  std::vector<Sentence> sentences_;  // in the order of their numbers in state_
  SearchWork work_;
  std::vector<int32_t> token_, sentence_, parent_;  // of the step's rows
  int64_t k_ = 0;                                   // continuations of each row that are looked at
  std::vector<float> values_;                       // [rows, k] of the last step, falling
  std::vector<int32_t> indices_;                    // [rows, k]
  std::vector<Candidate> heap_;
  std::vector<Live> next_;
};

}  // namespace starling
