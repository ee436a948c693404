// The steps of a search: sentences join, the model is asked once for all hypotheses, and what it says is prepared for the choice
// (search_choice.cpp).
#include "decode/search_sentence.h"

namespace starling {
namespace {

// Refuses NaN scores: comparisons with them would end every hypothesis at once or never, and silently translate to nothing.
[[noreturn]] void not_a_number(int64_t key, int64_t position) {
  throw DataError(fmt::format(
      "the model's scores for sentence {}, target token {}, are NaN: its weights are too large to compute with; use another checkpoint",
      key + 1, position));
}

}  // namespace

Search::Search(Model& model, std::vector<Model*> others, std::vector<double> weights)
    : model_(model), shard_(model.output_shard()), state_(model.begin_decoding()), weights_(std::move(weights)) {
  CHECK(weights_.empty() || weights_.size() == others.size() + 1, "{} weights of {} models", weights_.size(), others.size() + 1);
  for (Model* const other : others) {
    CHECK(!is_spread(shard_.group) && !is_spread(other->output_shard().group), "an ensemble of models in shards");
    CHECK(other->vocabulary().target_size == model.vocabulary().target_size, "an ensemble with {} and {} target tokens",
          model.vocabulary().target_size, other->vocabulary().target_size);
    CHECK(&other->parameters().backend().memory() == &model.parameters().backend().memory(), "an ensemble on two backends");
    others_.push_back({other, other->begin_decoding()});
  }
}
Search::~Search() = default;

void Search::add(int64_t key, std::vector<int32_t> source, const SearchOptions& options, std::vector<std::vector<int32_t>> for_others,
                 OnToken on_token) {
  CHECK(for_others.size() == others_.size(), "sources for {} of {} other models", for_others.size(), others_.size());
  CHECK(!on_token || (options.beam == 1 && options.n_best == 1 && !options.terms), "tokens as they come, of a beam of {} or with terms",
        options.beam);
  if ((options.repetition_penalty != 1 || options.prefix_bias > 0) && (!others_.empty() || is_spread(shard_.group)))
    throw ConfigError("repetition-penalty and prefix-bias work with one model that is not divided among ranks; leave them out");
  CHECK(!options.terms || (others_.empty() && !is_spread(shard_.group) && options.repetition_penalty == 1 && options.prefix_bias == 0),
        "terms in a search that cannot place them");
  joining_.push_back({key, std::move(source), options, std::move(for_others), std::move(on_token), false});
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
  for (const Sentence& s : sentences_) {
    const auto live = static_cast<int64_t>(s.live.size());
    rows += s.options.terms && !s.with_terms ? std::max(live, s.options.widest_beam()) : live;  // it may be searched for again
  }
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
    std::vector<Hypothesis> best = s.best();
    if (s.options.terms && !s.with_terms && !best.empty() && best.front().missing_terms > 0) {
      s.options.beam = s.options.widest_beam();
      joining_.push_back({s.key, std::move(s.source), std::move(s.options), {}, {}, true});
    } else {
      ended.push_back({s.key, std::move(best)});
    }
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
    s.limit = std::min(length_limit(o.max_length_factor, o.max_length_offset, static_cast<double>(s.source_tokens)) + s.forced(), longest);
    s.longest_penalty = length_penalty(o, s.limit - s.forced());
    // Without penalties scores only fall, and hopeless() alone ends the search.
    const bool falling = o.replace_ended && o.length_penalty == 0 && o.word_penalty == 0 && !s.covers();
    s.enough =
        falling ? std::numeric_limits<int64_t>::max() : std::max<int64_t>(std::llround(static_cast<double>(o.beam) * o.patience), o.n_best);
    s.on_token = std::move(joining_[i].on_token);
    s.with_terms = joining_[i].with_terms;
    if (o.terms) s.source = std::move(joining_[i].source);
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
    ensemble_.top_k(model_.parameters().backend(), output, other_outputs_, weights_, k_, values_, indices_);
  adjust(output);
  find_term_scores(output);
  for (const Sentence& s : sentences_)
    for (const Live& l : s.live)
      if (std::isnan(values_[static_cast<size_t>(l.row * k_)])) not_a_number(s.key, s.length + 1);
}

// Changes the scores of the rows whose sentences ask for that. What others get is not touched.
void Search::adjust(const OutputProduct& output) {
  adjustments_.clear();
  for (const Sentence& s : sentences_) {
    const SearchOptions& o = s.options;
    if (o.repetition_penalty == 1 && o.prefix_bias == 0) continue;
    for (const Live& l : s.live) {
      RowAdjustment a{.row = l.row, .repeated = {}, .repetition_penalty = o.repetition_penalty, .bias = o.prefix_bias};
      if (o.repetition_penalty != 1)
        for (int32_t p = l.prefix; p >= 0; p = s.prefixes[p].parent) a.repeated.push_back(s.prefixes[p].token);
      std::sort(a.repeated.begin(), a.repeated.end());
      a.repeated.erase(std::unique(a.repeated.begin(), a.repeated.end()), a.repeated.end());
      const auto at = static_cast<size_t>(s.length);
      if (o.prefix_bias > 0 && l.follows && at < o.target_prefix_ids.size()) a.favoured = o.target_prefix_ids[at];
      if (!a.repeated.empty() || a.favoured >= 0) adjustments_.push_back(std::move(a));
    }
  }
  if (!adjustments_.empty()) adjust_scores(model_.parameters().backend(), output, adjustments_, k_, values_, indices_);
}

int64_t length_limit(double factor, int64_t offset, double source_tokens) {
  constexpr double kRounding = 1e-9;  // 1.1 * 10 is 11
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(factor * source_tokens - kRounding)) + offset);
}

int64_t continuations(const SearchOptions& options, const ModelVocabulary& vocabulary) {
  return options.beam + std::max<int64_t>(1, std::ssize(options.end_ids)) + (vocabulary.unknown >= 0 && !options.allow_unknown ? 1 : 0) +
         (vocabulary.padding >= 0 ? 1 : 0) + static_cast<int64_t>(options.forbidden().always().size() + options.blank_ids.size());
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
