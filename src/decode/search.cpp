// The best continuations of a sentence are merged from the best ones of its hypotheses, which arrive sorted. Nothing else is sorted, and a
// step allocates hardly any memory once the vectors have grown.
#include "decode/search.h"

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

double penalty(const SearchOptions& o, int64_t length) {
  if (o.length_penalty == 0) return 1;
  const auto n = static_cast<double>(length);
  return std::pow(o.length_penalty_form == LengthPenaltyForm::power ? n : (5.0 + n) / 6.0, o.length_penalty);
}

// A node of the tree of prefixes.
struct Prefix {
  int32_t parent, token;
  int32_t source;  // the aligned source token, if requested
};

// Refuses NaN scores: comparisons with them would end every hypothesis at once or never, and silently translate to nothing.
[[noreturn]] void not_a_number(int64_t key, int64_t position) {
  throw DataError(fmt::format(
      "the model's scores for sentence {}, target token {}, are NaN: its weights are too large to compute with; use another checkpoint",
      key + 1, position));
}

}  // namespace

struct Search::Joining {
  int64_t key;
  std::vector<int32_t> source;
  SearchOptions options;
  std::vector<std::vector<int32_t>> for_others;
};

// A live hypothesis: its row in the last step, its last token, and its place in the tree of prefixes.
struct Search::Live {
  int32_t row, token;
  int32_t prefix;  // index into Sentence::prefixes, -1 for the empty one
  double log_probability;
};

struct Search::Sentence {
  int64_t key = 0;
  SearchOptions options;
  int32_t number = 0;                  // number of the sentence in the model's state
  std::vector<int32_t> other_numbers;  // in the states of the other models of an ensemble
  int64_t source_tokens = 0;
  int64_t limit = 0;           // most target tokens, including the end of sentence
  int64_t length = 0;          // target tokens of the live hypotheses after this step
  double longest_penalty = 1;  // the length penalty at the limit
  ForbiddenTokens forbidden;
  int64_t examined = 0;  // continuations()
  std::vector<Prefix> prefixes;
  std::vector<Live> live;  // best first
  std::vector<Hypothesis> finished;
  double best_score = -INFINITY;  // of the finished hypotheses
  // The attention of the rows of the last step, [rows, source_tokens], and its sum over all target tokens so far. Rows refer to their
  // parents, so reordering a beam costs only the addition that is needed anyway.
  int32_t first_row = -1;
  std::vector<float> attention, covered, covered_before;

  bool covers() const { return options.coverage_penalty > 0; }
  int64_t forced() const { return static_cast<int64_t>(options.target_prefix_ids.size()); }
  bool next_is_given() const { return length < forced() && length + 1 < limit; }
  bool attends() const { return covers() || options.alignment; }

  // Stores the attention of a step for the rows from `row` on, which extend `parents` (-1: none).
  void attend(std::span<const double> weights, int32_t row, std::span<const int32_t> parents) {
    attention.assign(weights.begin(), weights.end());
    if (covers()) {
      std::swap(covered, covered_before);
      covered = attention;
      for (size_t r = 0; r < parents.size() && parents[r] >= 0; ++r) {
        const float* before = covered_before.data() + (parents[r] - first_row) * source_tokens;
        float* sum = covered.data() + static_cast<int64_t>(r) * source_tokens;
        for (int64_t i = 0; i < source_tokens; ++i) sum[i] += before[i];
      }
    }
    first_row = row;
  }
  // Returns sum_i log(min(max(coverage_i, floor), 1)) of a row of the last step.
  double log_coverage(int32_t row) const {
    const float* sum = covered.data() + (row - first_row) * source_tokens;
    double total = 0;
    for (int64_t i = 0; i < source_tokens; ++i) total += std::log(std::clamp(static_cast<double>(sum[i]), kCoverageFloor, 1.0));
    return total;
  }
  // Returns the token of the source's text, counted without its prefix, with the most attention in a row of the last step, the first of
  // equal ones; 0 if alignment was not requested.
  int32_t aligned(int32_t row) const {
    if (!options.alignment) return 0;
    const float* weights = attention.data() + (row - first_row) * source_tokens;
    const float* const text = weights + std::min(static_cast<int64_t>(options.source_prefix_ids.size()), source_tokens - 1);
    return static_cast<int32_t>(std::max_element(text, weights + source_tokens) - text);
  }

  // Whether a live hypothesis can still matter. Log-probabilities only fall and the coverage penalty is at most 0, so its score can never
  // exceed its sum over the largest length penalty.
  bool hopeless(double log_probability) const {
    if (finished.empty()) return false;
    const double reach = log_probability / longest_penalty;
    return options.n_best == 1 ? reach <= best_score : reach < best_score - options.prune_threshold;
  }

  std::vector<Hypothesis> best() {
    std::stable_sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (static_cast<int64_t>(finished.size()) > options.n_best) finished.resize(options.n_best);
    if (options.prune_threshold > 0)
      while (finished.back().score < best_score - options.prune_threshold) finished.pop_back();
    return std::move(finished);
  }
};

Search::Search(Model& model, std::vector<Model*> others) : model_(model), shard_(model.output_shard()), state_(model.begin_decoding()) {
  for (Model* const other : others) {
    CHECK(!is_spread(shard_.group) && !is_spread(other->output_shard().group), "an ensemble of models in shards");
    CHECK(other->vocabulary().target_size == model.vocabulary().target_size, "an ensemble with {} and {} target tokens",
          model.vocabulary().target_size, other->vocabulary().target_size);
    CHECK(&other->parameters().backend().memory() == &model.parameters().backend().memory(), "an ensemble on two backends");
    others_.push_back({other, other->begin_decoding()});
  }
}
Search::~Search() = default;

void Search::add(int64_t key, std::vector<int32_t> source, const SearchOptions& options, std::vector<std::vector<int32_t>> for_others) {
  CHECK(for_others.size() == others_.size(), "sources for {} of {} other models", for_others.size(), others_.size());
  joining_.push_back({key, std::move(source), options, std::move(for_others)});
}

int64_t Search::bytes() const {
  int64_t bytes = state_->bytes();
  for (const Other& other : others_) bytes += other.state->bytes();
  return bytes;
}

void Search::forget(const Sentence& s) {
  state_->drop(s.number);
  for (size_t m = 0; m < others_.size(); ++m) others_[m].state->drop(s.other_numbers[m]);
}

void Search::drop(int64_t key) {
  std::erase_if(joining_, [&](const Joining& j) { return j.key == key; });
  std::erase_if(sentences_, [&](const Sentence& s) {
    if (s.key != key) return false;
    forget(s);
    return true;
  });
}

int64_t Search::rows() const {
  int64_t rows = 0;
  for (const Joining& j : joining_) rows += j.options.beam;
  for (const Sentence& s : sentences_) rows += static_cast<int64_t>(s.live.size());
  return rows;
}

std::vector<Search::Finished> Search::step() {
  join();
  if (sentences_.empty()) return {};
  const OutputProduct output = next_output();
  if (!std::all_of(sentences_.begin(), sentences_.end(), [](const Sentence& s) { return s.next_is_given(); })) find_best(output);
  std::vector<Finished> ended;
  for (Sentence& s : sentences_) choose(s);
  std::erase_if(sentences_, [&](Sentence& s) {
    if (!s.live.empty()) return false;
    forget(s);
    ended.push_back({s.key, s.best()});
    return true;
  });
  return ended;
}

void Search::join() {
  if (joining_.empty()) return;
  PackedTokens packed;
  for (const Joining& j : joining_) packed.append(j.source.data(), j.source.data() + j.source.size());
  const std::vector<int32_t> numbers = model_.encode(*state_, packed);
  int64_t longest = longest_sentence(model_.config());
  std::vector<std::vector<int32_t>> other_numbers;
  for (size_t m = 0; m < others_.size(); ++m) {
    CHECK(work_.steps == 0, "sentences join an ensemble under way");  // the models' states would number them in different orders
    PackedTokens sources;
    for (const Joining& j : joining_) sources.append(j.for_others[m].data(), j.for_others[m].data() + j.for_others[m].size());
    other_numbers.push_back(others_[m].model->encode(*others_[m].state, sources));
    longest = std::min(longest, longest_sentence(others_[m].model->config()));
  }
  for (size_t i = 0; i < joining_.size(); ++i) {
    const SearchOptions& o = joining_[i].options;
    Sentence s;
    s.key = joining_[i].key;
    s.options = o;
    s.number = numbers[i];
    for (const std::vector<int32_t>& each : other_numbers) s.other_numbers.push_back(each[i]);
    s.source_tokens = static_cast<int64_t>(joining_[i].source.size()) - (model_.config().source_end ? 0 : 1);
    s.limit = std::max<int64_t>(1, static_cast<int64_t>(o.max_length_factor * static_cast<double>(s.source_tokens)) + o.max_length_offset);
    s.limit = std::min(s.limit + s.forced(), longest);
    s.longest_penalty = penalty(o, s.limit - s.forced());
    s.forbidden = o.forbidden();
    s.examined = continuations(o, model_.vocabulary());
    s.live = {{-1, model_.vocabulary().begin, -1, 0.0}};
    sentences_.push_back(std::move(s));
  }
  joining_.clear();
  std::sort(sentences_.begin(), sentences_.end(), [](const Sentence& a, const Sentence& b) { return a.number < b.number; });
}

OutputProduct Search::next_output() {
  token_.clear();
  sentence_.clear();
  parent_.clear();
  for (Sentence& s : sentences_)
    for (Live& l : s.live) {
      token_.push_back(l.token);
      sentence_.push_back(s.number);
      parent_.push_back(l.row);
      l.row = static_cast<int32_t>(token_.size()) - 1;
    }
  const bool attends = std::any_of(sentences_.begin(), sentences_.end(), [](const Sentence& s) { return s.attends(); });
  Tensor attention;
  const OutputProduct output = model_.next_output(*state_, token_, sentence_, parent_, attends ? &attention : nullptr);
  other_outputs_.clear();
  std::vector<int32_t> numbers, tokens;
  for (size_t m = 0; m < others_.size(); ++m) {
    numbers.clear();
    for (const Sentence& s : sentences_) numbers.insert(numbers.end(), s.live.size(), s.other_numbers[m]);
    tokens = token_;  // but each model begins in its own way
    for (size_t r = 0; r < tokens.size(); ++r)
      if (parent_[r] < 0) tokens[r] = others_[m].model->vocabulary().begin;
    other_outputs_.push_back(others_[m].model->next_output(*others_[m].state, tokens, numbers, parent_));
  }
  ++work_.steps;
  work_.rows += static_cast<int64_t>(token_.size());
  if (!attends) return output;
  const std::vector<double> weights = attention.to_doubles();
  size_t at = 0;
  for (Sentence& s : sentences_) {
    const size_t rows = s.live.size(), count = rows * static_cast<size_t>(s.source_tokens);
    CHECK(at + count <= weights.size(), "{} weights of attention", weights.size());
    if (s.attends()) s.attend(std::span(weights).subspan(at, count), s.live[0].row, std::span(parent_).subspan(s.live[0].row, rows));
    at += count;
  }
  CHECK(at == weights.size(), "{} weights of attention for {} pairs of a hypothesis and a source token", weights.size(), at);
  return output;
}

void Search::find_forbidden() {
  forbidden_.clear();
  forbidden_begin_.clear();
  if (std::none_of(sentences_.begin(), sentences_.end(), [](const Sentence& s) { return s.forbidden.depend_on_prefix(); })) return;
  std::vector<int32_t> prefix;
  forbidden_begin_.push_back(0);
  for (const Sentence& s : sentences_)
    for (const Live& l : s.live) {
      if (s.forbidden.depend_on_prefix()) {
        prefix.clear();
        for (int32_t p = l.prefix; p >= 0; p = s.prefixes[p].parent) prefix.push_back(s.prefixes[p].token);
        std::reverse(prefix.begin(), prefix.end());
        s.forbidden.append_after(prefix, forbidden_);
      }
      forbidden_begin_.push_back(static_cast<int32_t>(forbidden_.size()));
    }
}

void Search::find_best(const OutputProduct& output) {
  find_forbidden();
  k_ = 0;
  for (const Sentence& s : sentences_) {
    k_ = std::max(k_, s.examined);
    if (!forbidden_.empty())
      for (const Live& l : s.live) k_ = std::max<int64_t>(k_, s.examined + forbidden_begin_[l.row + 1] - forbidden_begin_[l.row]);
  }
  k_ = std::min(k_, is_spread(shard_.group) ? shard_.vocabulary : output.w->out);
  if (others_.empty())
    log_softmax_top_k(model_.parameters().backend(), output, shard_, k_, values_, indices_);
  else
    ensemble_.top_k(model_.parameters().backend(), output, other_outputs_, k_, values_, indices_);
  for (const Sentence& s : sentences_)
    for (const Live& l : s.live)
      if (std::isnan(values_[static_cast<size_t>(l.row * k_)])) not_a_number(s.key, s.length + 1);
}

// Forbidden tokens are skipped but keep their probability: log-probabilities are the model's, as `score` prints them.
bool Search::allowed(const Sentence& s, int32_t row, int32_t token) const {
  const ModelVocabulary& v = model_.vocabulary();
  if ((token == v.end && s.options.fixed_length) || (token == v.unknown && !s.options.allow_unknown) || token == v.padding ||
      s.forbidden.always(token))
    return false;
  return forbidden_.empty() ||
         !std::binary_search(forbidden_.begin() + forbidden_begin_[row], forbidden_.begin() + forbidden_begin_[row + 1], token);
}

// Pushes the hypothesis' continuation of this rank, or the next allowed one, onto the heap; nothing if all are taken.
void Search::offer(const Sentence& s, int32_t live, int32_t rank) {
  const Live& l = s.live[live];
  const int64_t at = l.row * k_;
  while (rank < k_ && !allowed(s, l.row, indices_[at + rank])) ++rank;
  if (rank >= k_) return;
  heap_.push_back({l.log_probability + values_[at + rank], live, rank});
  std::push_heap(heap_.begin(), heap_.end());
}

// The best candidates fill the places of the beam that finished hypotheses have not taken. Pruning against the best of all also drops
// candidates that are as far below the best of their own hypothesis.
void Search::choose(Sentence& s) {
  const SearchOptions& o = s.options;
  const bool prune = o.prune_threshold > 0;
  const int64_t places = o.beam - static_cast<int64_t>(s.finished.size());
  const bool given = s.next_is_given();
  ++s.length;
  heap_.clear();
  next_.clear();
  if (given) {  // one hypothesis
    const Live from = s.live.front();
    const int32_t token = o.target_prefix_ids[static_cast<size_t>(s.length - 1)];
    s.prefixes.push_back({from.prefix, token, s.aligned(from.row)});
    s.live = {{from.row, token, static_cast<int32_t>(s.prefixes.size()) - 1, from.log_probability}};
    return;
  }
  const auto offer_all = [&] {
    for (size_t i = 0; i < s.live.size(); ++i) offer(s, static_cast<int32_t>(i), 0);
  };
  offer_all();
  if (heap_.empty()) {  // every token is forbidden, so the end is allowed before the fixed length
    s.options.fixed_length = false;
    offer_all();
  }
  const double top = heap_.empty() ? 0 : heap_.front().log_probability;
  for (int64_t taken = 0; taken < places && !heap_.empty(); ++taken) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate c = heap_.back();
    heap_.pop_back();
    if (prune && (c.log_probability < top - o.prune_threshold || s.hopeless(c.log_probability))) break;
    const Live& from = s.live[c.live];
    const int32_t token = indices_[from.row * k_ + c.rank];
    if (token == model_.vocabulary().end) {
      finish(s, from.prefix, from.row, c.log_probability);
      if (o.alignment) s.finished.back().alignment.push_back(s.aligned(from.row));
    } else {
      s.prefixes.push_back({from.prefix, token, s.aligned(from.row)});
      next_.push_back({from.row, token, static_cast<int32_t>(s.prefixes.size()) - 1, c.log_probability});
    }
    offer(s, c.live, c.rank + 1);
  }
  if (s.length == s.limit) {
    for (const Live& l : next_) finish(s, l.prefix, l.row, l.log_probability);
    next_.clear();
  }
  if (prune) {  // sorted best first, so hopeless ones are at the end
    while (!next_.empty() && s.hopeless(next_.back().log_probability)) next_.pop_back();
  } else if (o.n_best == 1 && !next_.empty() && s.hopeless(next_.front().log_probability)) {
    next_.clear();
  }
  std::swap(s.live, next_);
}

void Search::finish(Sentence& s, int32_t prefix, int32_t row, double log_probability) {
  Hypothesis h;
  for (; prefix >= 0; prefix = s.prefixes[prefix].parent) {
    h.tokens.push_back(s.prefixes[prefix].token);
    if (s.options.alignment) h.alignment.push_back(s.prefixes[prefix].source);
  }
  std::reverse(h.tokens.begin(), h.tokens.end());
  std::reverse(h.alignment.begin(), h.alignment.end());
  const auto given = static_cast<ptrdiff_t>(std::min<size_t>(s.options.target_prefix_ids.size(), h.tokens.size()));
  h.tokens.erase(h.tokens.begin(), h.tokens.begin() + given);
  if (s.options.alignment) h.alignment.erase(h.alignment.begin(), h.alignment.begin() + given);
  h.length = s.length - s.forced();
  h.log_probability = log_probability;
  h.score = log_probability / penalty(s.options, h.length);
  if (s.covers()) h.score += s.options.coverage_penalty * s.log_coverage(row);
  s.best_score = std::max(s.best_score, h.score);
  s.finished.push_back(std::move(h));
}

int64_t continuations(const SearchOptions& options, const ModelVocabulary& vocabulary) {
  return options.beam + (options.fixed_length ? 1 : 0) + (vocabulary.unknown >= 0 && !options.allow_unknown ? 1 : 0) +
         (vocabulary.padding >= 0 ? 1 : 0) + static_cast<int64_t>(options.forbidden().always().size());
}

SearchOptions search_defaults(const std::string& preset) {
  SearchOptions o;
  if (architecture_of(preset) == Architecture::gnmt) {
    o.length_penalty = 0.2;
    o.coverage_penalty = 0.2;
    o.prune_threshold = 3.0;
  }
  return o;
}

}  // namespace starling
