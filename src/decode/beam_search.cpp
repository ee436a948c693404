// The best continuations of a sentence are merged from its hypotheses' own best ones, which come sorted; nothing is sorted, and no memory
// is taken within a step once the vectors have grown.
#include "decode/beam_search.h"

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

double penalty(double alpha, int64_t length) { return alpha == 0 ? 1 : std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha); }

// A live hypothesis: its row in the last step, its last token, and its place in the tree of prefixes.
struct Live {
  int32_t row, token;
  int32_t prefix;  // index into Search::prefixes_, -1 for the empty one
  double log_probability;
};

struct Sentence {
  int32_t index = 0;
  int64_t limit = 0;           // most target tokens, end of sentence included
  double longest_penalty = 1;  // the length penalty at the limit
  std::vector<Live> live;      // best first
  std::vector<Hypothesis> finished;
  double best_score = -INFINITY;  // of the finished ones
};

// What the rows of the last step have paid attention to so far, summed over target tokens: row by row as many numbers as the row's
// sentence has source tokens. Rows refer to their parents, so reordering a beam costs the one addition that is due anyway.
class Coverage {
 public:
  explicit Coverage(std::span<const std::vector<int32_t>> sources) {
    for (const auto& s : sources) source_tokens_.push_back(static_cast<int64_t>(s.size()));
  }
  // Adds the coverage of each row's parent to the attention of a step.
  void add_step(const Tensor& attention, std::span<const int32_t> sentence, std::span<const int32_t> parent) {
    const std::vector<double> weights = attention.to_doubles();
    std::swap(sum_, before_), std::swap(offsets_, offsets_before_);
    sum_.assign(weights.begin(), weights.end());
    offsets_.clear();
    int64_t at = 0;
    for (size_t r = 0; r < sentence.size(); ++r) {
      const int64_t tokens = source_tokens_[sentence[r]];
      offsets_.push_back(at);
      if (!first_) {
        const float* before = before_.data() + offsets_before_[parent[r]];
        for (int64_t i = 0; i < tokens; ++i) sum_[at + i] += before[i];
      }
      at += tokens;
    }
    CHECK(at == static_cast<int64_t>(sum_.size()), "{} weights of attention for {} source tokens", sum_.size(), at);
    first_ = false;
  }
  // sum_i log(min(max(coverage_i, floor), 1)) of a row of the last step.
  double log_sum(int32_t row, int32_t sentence) const {
    double sum = 0;
    for (int64_t i = 0; i < source_tokens_[sentence]; ++i)
      sum += std::log(std::clamp(static_cast<double>(sum_[offsets_[row] + i]), kCoverageFloor, 1.0));
    return sum;
  }

 private:
  std::vector<int64_t> source_tokens_;
  std::vector<float> sum_, before_;
  std::vector<int64_t> offsets_, offsets_before_;
  bool first_ = true;
};

class Search {
 public:
  Search(Model& model, const ModelVocabulary& vocabulary, std::span<const std::vector<int32_t>> sources, const SearchOptions& options)
      : vocabulary_(vocabulary), options_(options), model_(model), output_(model.output_shard()), coverage_(sources) {
    PackedTokens packed;
    for (size_t i = 0; i < sources.size(); ++i) {
      packed.append(sources[i].data(), sources[i].data() + sources[i].size());
      Sentence s;
      s.index = static_cast<int32_t>(i);
      s.limit = std::max<int64_t>(
          1, static_cast<int64_t>(options.max_length_factor * static_cast<double>(sources[i].size())) + options.max_length_offset);
      s.longest_penalty = penalty(options.length_penalty, s.limit);
      s.live = {{0, vocabulary.begin, -1, 0.0}};
      sentences_.push_back(std::move(s));
    }
    state_ = model.encode(packed);
  }

  std::vector<std::vector<Hypothesis>> run(SearchWork& work) {
    std::vector<std::vector<Hypothesis>> results(sentences_.size());
    for (int64_t length = 1; !sentences_.empty(); ++length) {
      const Tensor logits = step();
      ++work.steps, work.rows += static_cast<int64_t>(token_.size());
      expand(logits, length);
      std::erase_if(sentences_, [&](Sentence& s) {
        if (!s.live.empty()) return false;
        results[s.index] = best(s);
        return true;
      });
    }
    return results;
  }

 private:
  Tensor step() {
    token_.clear(), sentence_.clear(), parent_.clear();
    for (Sentence& s : sentences_)  // in rising order of their indices, as the model demands
      for (Live& l : s.live) {
        token_.push_back(l.token), sentence_.push_back(s.index), parent_.push_back(l.row);
        l.row = static_cast<int32_t>(token_.size()) - 1;
      }
    const bool covers = options_.coverage_penalty > 0;
    Tensor attention;
    const Tensor logits = model_.next_logits(*state_, token_, sentence_, parent_, covers ? &attention : nullptr);
    if (covers) coverage_.add_step(attention, sentence_, parent_);
    return logits;
  }

  // Comparisons with NaN would end every hypothesis at once or never, and translate to nothing without a word.
  [[noreturn]] static void not_a_number(int32_t sentence, int64_t position) {
    throw DataError(
        fmt::format("the model's scores for sentence {} of a batch, target token {}, are NaN: its weights are too large to compute with; "
                    "use another checkpoint",
                    sentence + 1, position));
  }

  void expand(const Tensor& logits, int64_t length) {
    // Where the end of sentence is not allowed, one more.
    k_ = std::min(options_.beam + (options_.fixed_length ? 1 : 0), is_spread(output_.group) ? output_.vocabulary : logits.columns());
    const int64_t rows = logits.rows();
    if (!best_ || best_.rows() < rows) {
      Memory& memory = model_.parameters().backend().memory();
      best_ = Tensor({rows, k_}, DType::f32, memory), tokens_ = Tensor({rows, k_}, DType::i32, memory);
    }
    log_softmax_top_k(model_.parameters().backend(), logits, output_, k_, best_.rows(0, rows), tokens_.rows(0, rows));
    values_.resize(static_cast<size_t>(rows * k_)), indices_.resize(values_.size());
    best_.rows(0, rows).read<float>(values_), tokens_.rows(0, rows).read<int32_t>(indices_);
    for (int64_t r = 0; r < logits.rows(); ++r)
      if (std::isnan(values_[static_cast<size_t>(r * k_)])) not_a_number(sentence_[static_cast<size_t>(r)], length);
    for (Sentence& s : sentences_) choose(s, length);
  }

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

  // Puts the hypothesis' continuation of this rank, or the next one that is allowed, onto the heap; none when all are taken.
  void offer(const Sentence& s, int32_t live, int32_t rank) {
    const Live& l = s.live[live];
    const int64_t at = l.row * k_;
    if (options_.fixed_length && rank < k_ && indices_[at + rank] == vocabulary_.end) ++rank;
    if (rank >= k_) return;
    heap_.push_back({l.log_probability + values_[at + rank], live, rank});
    std::push_heap(heap_.begin(), heap_.end());
  }

  // Whether a live hypothesis can still matter. Log-probabilities only fall and the coverage penalty is at most 0, so it can never rise
  // above its sum over the largest length penalty.
  bool hopeless(const Sentence& s, double log_probability) const {
    if (s.finished.empty()) return false;
    const double reach = log_probability / s.longest_penalty;
    return options_.n_best == 1 ? reach <= s.best_score : reach < s.best_score - options_.prune_threshold;
  }

  // The best candidates fill the places of the beam that finished hypotheses have not taken yet. Pruning against the best of all of them
  // also drops what is as far below the best of its own hypothesis.
  void choose(Sentence& s, int64_t length) {
    const bool prune = options_.prune_threshold > 0;
    const int64_t places = options_.beam - static_cast<int64_t>(s.finished.size());
    heap_.clear(), next_.clear();
    for (size_t i = 0; i < s.live.size(); ++i) offer(s, static_cast<int32_t>(i), 0);
    const double top = heap_.empty() ? 0 : heap_.front().log_probability;
    for (int64_t taken = 0; taken < places && !heap_.empty(); ++taken) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate c = heap_.back();
      heap_.pop_back();
      if (prune && (c.log_probability < top - options_.prune_threshold || hopeless(s, c.log_probability))) break;
      const Live& from = s.live[c.live];
      const int32_t token = indices_[from.row * k_ + c.rank];
      if (token == vocabulary_.end) {
        finish(s, from.prefix, from.row, c.log_probability, length);
      } else {
        prefixes_.push_back({from.prefix, token});
        next_.push_back({from.row, token, static_cast<int32_t>(prefixes_.size()) - 1, c.log_probability});
      }
      offer(s, c.live, c.rank + 1);
    }
    if (length == s.limit) {
      for (const Live& l : next_) finish(s, l.prefix, l.row, l.log_probability, length);
      next_.clear();
    }
    if (prune) {  // the best first, so what is hopeless is at the end
      while (!next_.empty() && hopeless(s, next_.back().log_probability)) next_.pop_back();
    } else if (options_.n_best == 1 && !next_.empty() && hopeless(s, next_.front().log_probability)) {
      next_.clear();
    }
    std::swap(s.live, next_);
  }

  void finish(Sentence& s, int32_t prefix, int32_t row, double log_probability, int64_t length) {
    Hypothesis h;
    for (; prefix >= 0; prefix = prefixes_[prefix].parent) h.tokens.push_back(prefixes_[prefix].token);
    std::reverse(h.tokens.begin(), h.tokens.end());
    h.length = length;
    h.log_probability = log_probability;
    h.score = log_probability / penalty(options_.length_penalty, length);
    if (options_.coverage_penalty > 0) h.score += options_.coverage_penalty * coverage_.log_sum(row, s.index);
    s.best_score = std::max(s.best_score, h.score);
    s.finished.push_back(std::move(h));
  }

  std::vector<Hypothesis> best(Sentence& s) const {
    std::vector<Hypothesis>& found = s.finished;
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (static_cast<int64_t>(found.size()) > options_.n_best) found.resize(options_.n_best);
    if (options_.prune_threshold > 0)
      while (found.back().score < s.best_score - options_.prune_threshold) found.pop_back();
    return std::move(found);
  }

  struct Prefix {
    int32_t parent, token;
  };
  ModelVocabulary vocabulary_;
  SearchOptions options_;
  Model& model_;
  VocabularyShard output_;
  Coverage coverage_;
  std::vector<Sentence> sentences_;
  std::unique_ptr<DecodeState> state_;
  std::vector<Prefix> prefixes_;
  std::vector<int32_t> token_, sentence_, parent_;  // of the step's rows
  int64_t k_ = 0;                                   // continuations of each row that are looked at
  Tensor best_, tokens_;                            // of the last step, in the backend's memory
  std::vector<float> values_;                       // [rows, k], falling
  std::vector<int32_t> indices_;                    // [rows, k]
  std::vector<Candidate> heap_;
  std::vector<Live> next_;
};

}  // namespace

SearchOptions search_defaults(const std::string& preset) {
  SearchOptions o;
  if (architecture_of(preset) == Architecture::gnmt) o.length_penalty = 0.2, o.coverage_penalty = 0.2, o.prune_threshold = 3.0;
  return o;
}

std::vector<std::vector<Hypothesis>> beam_search(Model& model, const ModelVocabulary& vocabulary,
                                                 std::span<const std::vector<int32_t>> sources, const SearchOptions& options,
                                                 SearchWork* work) {
  if (sources.empty()) return {};
  SearchWork own;
  return Search(model, vocabulary, sources, options).run(work ? *work : own);
}

}  // namespace starling
