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
  int64_t limit = 0;  // most target tokens, end of sentence included
  std::vector<Live> live;
  std::vector<Hypothesis> finished;
};

class Search {
 public:
  Search(Model& model, const ModelVocabulary& vocabulary, std::span<const std::vector<int32_t>> sources, const SearchOptions& options)
      : vocabulary_(vocabulary), options_(options), model_(model) {
    PackedTokens packed;
    for (size_t i = 0; i < sources.size(); ++i) {
      packed.append(sources[i].data(), sources[i].data() + sources[i].size());
      Sentence s;
      s.index = static_cast<int32_t>(i);
      s.limit = std::max<int64_t>(
          1, static_cast<int64_t>(options.max_length_factor * static_cast<double>(sources[i].size())) + options.max_length_offset);
      s.live = {{0, vocabulary.begin, -1, 0.0}};
      sentences_.push_back(std::move(s));
    }
    state_ = model.encode(packed);
  }

  std::vector<std::vector<Hypothesis>> run() {
    std::vector<std::vector<Hypothesis>> results(sentences_.size());
    for (int64_t length = 1; !sentences_.empty(); ++length) {
      const Tensor logits = step();
      expand(logits, length);
      std::erase_if(sentences_, [&](Sentence& s) {
        if (!s.live.empty()) return false;
        results[s.index] = best(s.finished);
        return true;
      });
    }
    return results;
  }

 private:
  Tensor step() {
    std::vector<int32_t> token, sentence, parent;
    for (Sentence& s : sentences_)
      for (Live& l : s.live) {
        token.push_back(l.token), sentence.push_back(s.index), parent.push_back(l.row);
        l.row = static_cast<int32_t>(token.size()) - 1;
      }
    return model_.next_logits(*state_, token, sentence, parent);
  }

  struct Candidate {
    double log_probability;
    const Live* from;
    int32_t token;
  };

  void expand(const Tensor& logits, int64_t length) {
    const int64_t k = std::min(options_.beam + 1, logits.columns());
    values_.resize(logits.rows() * k), indices_.resize(logits.rows() * k);
    model_.parameters().backend().log_softmax_top_k(logits, k, values_, indices_);
    for (Sentence& s : sentences_) {
      candidates_.clear();
      for (const Live& l : s.live)
        for (int64_t i = 0; i < k; ++i) {
          const int32_t token = indices_[l.row * k + i];
          if (options_.fixed_length && token == vocabulary_.end) continue;
          candidates_.push_back({l.log_probability + values_[l.row * k + i], &l, token});
        }
      std::stable_sort(candidates_.begin(), candidates_.end(),
                       [](const auto& a, const auto& b) { return a.log_probability > b.log_probability; });
      choose(s, length);
    }
  }

  // The best candidates fill the places of the beam that finished hypotheses have not taken yet.
  void choose(Sentence& s, int64_t length) {
    const int64_t places = options_.beam - static_cast<int64_t>(s.finished.size());
    std::vector<Live> next;
    int64_t taken = 0;
    for (const Candidate& c : candidates_) {
      if (taken == places) break;
      ++taken;
      if (c.token == vocabulary_.end) {
        finish(s, c.from->prefix, c.log_probability, length);
        continue;
      }
      prefixes_.push_back({c.from->prefix, c.token});
      next.push_back({c.from->row, c.token, static_cast<int32_t>(prefixes_.size()) - 1, c.log_probability});
    }
    if (length == s.limit) {
      for (const Live& l : next) finish(s, l.prefix, l.log_probability, length);
      next.clear();
    }
    // Log-probabilities only fall, so a live hypothesis can never rise above its sum over the largest penalty.
    if (options_.n_best == 1 && !next.empty() && !s.finished.empty()) {
      double done = -INFINITY;
      for (const Hypothesis& h : s.finished) done = std::max(done, h.score);
      if (done >= next.front().log_probability / penalty(options_.length_penalty, s.limit)) next.clear();
    }
    s.live = std::move(next);
  }

  void finish(Sentence& s, int32_t prefix, double log_probability, int64_t length) {
    Hypothesis h;
    for (; prefix >= 0; prefix = prefixes_[prefix].parent) h.tokens.push_back(prefixes_[prefix].token);
    std::reverse(h.tokens.begin(), h.tokens.end());
    h.length = length;
    h.log_probability = log_probability;
    h.score = log_probability / penalty(options_.length_penalty, length);
    s.finished.push_back(std::move(h));
  }

  std::vector<Hypothesis> best(std::vector<Hypothesis>& finished) const {
    std::stable_sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (static_cast<int64_t>(finished.size()) > options_.n_best) finished.resize(options_.n_best);
    return std::move(finished);
  }

  struct Prefix {
    int32_t parent, token;
  };
  ModelVocabulary vocabulary_;
  SearchOptions options_;
  Model& model_;
  std::vector<Sentence> sentences_;
  std::unique_ptr<DecodeState> state_;
  std::vector<Prefix> prefixes_;
  std::vector<float> values_;
  std::vector<int32_t> indices_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(Model& model, const ModelVocabulary& vocabulary,
                                                 std::span<const std::vector<int32_t>> sources, const SearchOptions& options) {
  if (sources.empty()) return {};
  return Search(model, vocabulary, sources, options).run();
}

}  // namespace starling
