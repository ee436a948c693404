// Which continuations of a sentence's hypotheses a step takes. The best ones are merged from the best ones of each hypothesis, which arrive
// sorted. Nothing else is sorted, and a step allocates hardly any memory once the vectors have grown.
#include "decode/search_sentence.h"

namespace starling {

bool Search::ends(const Sentence& s, int32_t token) const {
  const std::vector<int32_t>& ends = s.options.end_ids;
  return ends.empty() ? token == model_.vocabulary().end : std::find(ends.begin(), ends.end(), token) != ends.end();
}

// Forbidden tokens are skipped but keep their probability: log-probabilities are the model's, as `score` prints them.
bool Search::allowed(const Sentence& s, const Live& live, int32_t token) const {
  const ModelVocabulary& v = model_.vocabulary();
  const bool too_short = live.shown < s.options.min_length;
  if (ends(s, token) && !s.may_always_end && (s.options.fixed_length || too_short)) return false;
  // Text is not put off by one blank piece after the other.
  if (too_short && s.is_blank(token) && (s.is_blank(live.token) || s.length == s.limit)) return false;
  if ((token == v.unknown && !s.options.allow_unknown) || token == v.padding || s.forbidden.always(token)) return false;
  return forbidden_.empty() ||
         !std::binary_search(forbidden_.begin() + forbidden_begin_[live.row], forbidden_.begin() + forbidden_begin_[live.row + 1], token);
}

// Pushes the hypothesis' continuation of this rank, or the next allowed one, onto the heap; nothing if all are taken.
void Search::offer(const Sentence& s, int32_t live, int32_t rank) {
  const Live& l = s.live[live];
  const int64_t at = l.row * k_;
  while (rank < k_ && !allowed(s, l, indices_[at + rank])) ++rank;
  if (rank >= k_) return;
  heap_.push_back({l.log_probability + values_[at + rank], live, rank});
  std::push_heap(heap_.begin(), heap_.end());
}

// Extends the only hypothesis by the next token of the target prefix.
void Search::force(Sentence& s) {
  const Live from = s.live.front();
  const int32_t token = s.options.target_prefix_ids[static_cast<size_t>(s.length++)];
  s.prefixes.push_back({from.prefix, token, s.aligned(from.row), s.keep_attention(from.row), 0});
  s.live = {{from.row, token, static_cast<int32_t>(s.prefixes.size()) - 1, from.log_probability}};
  if (s.options.terms) s.live.front().terms = s.options.terms->after(from.terms, token);
}

// The best continuations are taken, as many as the beam is wide; those that end their hypothesis give their places to the next best ones
// that do not. Pruning against the best of all also drops candidates that are as far below the best of their own hypothesis.
void Search::choose(Sentence& s) {
  if (s.next_is_given()) return force(s);
  if (s.with_terms) return choose_with_terms(s);
  const SearchOptions& o = s.options;
  const bool at_limit = ++s.length == s.limit;
  const int64_t places = o.replace_ended ? o.beam : o.beam - static_cast<int64_t>(s.finished.size());
  heap_.clear();
  next_.clear();
  const auto offer_all = [&] {
    for (size_t i = 0; i < s.live.size(); ++i) offer(s, static_cast<int32_t>(i), 0);
  };
  offer_all();
  if (heap_.empty()) {  // every other token is forbidden
    s.may_always_end = true;
    offer_all();
  }
  const double top = heap_.empty() ? 0 : heap_.front().log_probability;
  const int64_t live_places = o.replace_ended && !at_limit ? places : 0;
  for (int64_t taken = 0; !heap_.empty() && (taken < places || std::ssize(next_) < live_places); ++taken) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate c = heap_.back();
    heap_.pop_back();
    if (o.prune_threshold > 0 && c.log_probability < top - o.prune_threshold) break;
    const Live& from = s.live[c.live];
    const bool end = ends(s, indices_[from.row * k_ + c.rank]);
    if (!end || taken < places) take(s, from, indices_[from.row * k_ + c.rank], c.log_probability, end);
    offer(s, c.live, c.rank + 1);
  }
  if (s.on_token) tell_token(s);
  if (at_limit) {
    for (const Live& l : next_) finish(s, l, nullptr);
    next_.clear();
  }
  if (std::ssize(s.finished) >= s.enough) next_.clear();
  while (!next_.empty() && s.hopeless(next_.back().log_probability)) next_.pop_back();  // the best come first
  std::swap(s.live, next_);
}

// Adds a continuation to the live hypotheses, or finishes one with it.
void Search::take(Sentence& s, const Live& from, int32_t token, double log_probability, bool end) {
  const SearchOptions& o = s.options;
  const auto at = static_cast<size_t>(s.length) - 1;
  Live to{from.row, token, from.prefix, log_probability, from.shown, from.follows, from.terms};
  const SearchPrefix node{from.prefix, token, s.aligned(from.row), s.keep_attention(from.row),
                          static_cast<float>(log_probability - from.log_probability)};
  if (end) return finish(s, to, &node);
  s.prefixes.push_back(node);
  to.prefix = static_cast<int32_t>(s.prefixes.size()) - 1;
  to.shown += !s.is_blank(token);
  if (o.terms) to.terms = o.terms->after(from.terms, token);
  to.follows = from.follows && at < o.target_prefix_ids.size() && token == o.target_prefix_ids[at];
  next_.push_back(to);
}

// Tells the token of the only hypothesis, and ends it if that is not to go on.
void Search::tell_token(Sentence& s) {
  const double before = s.live.front().log_probability;
  if (!s.finished.empty()) {
    s.on_token({s.finished.front().end, s.finished.front().log_probability - before, true});
    next_.clear();
  } else if (!next_.empty()) {
    const Live l = next_.front();
    if (s.on_token({l.token, l.log_probability - before, s.length == s.limit}) || s.length == s.limit) return;
    finish(s, l, nullptr);
    next_.clear();
  }
}

// Adds a hypothesis, whose row is that of the step that predicted its last token, to the finished ones; `end` ended it, or it is cut.
void Search::finish(Sentence& s, const Live& from, const SearchPrefix* end) {
  Hypothesis h;
  const auto add = [&](const SearchPrefix& node) {
    h.log_probabilities.push_back(node.log_probability);
    if (s.options.alignment) h.alignment.push_back(node.source);
    if (s.options.attention) h.attention.push_back(s.kept[static_cast<size_t>(node.attention)]);
  };
  if (end) add(*end), h.end = end->token;
  const int64_t all = s.length - (end ? 1 : 0), hidden = std::min(s.hidden(), all);
  int32_t p = from.prefix;
  for (; std::ssize(h.tokens) < all - hidden; p = s.prefixes[p].parent) {
    h.tokens.push_back(s.prefixes[p].token);
    add(s.prefixes[p]);
  }
  for (; s.options.attention && p >= 0; p = s.prefixes[p].parent)
    h.attention.push_back(s.kept[static_cast<size_t>(s.prefixes[p].attention)]);
  std::reverse(h.tokens.begin(), h.tokens.end());
  std::reverse(h.log_probabilities.begin(), h.log_probabilities.end());
  std::reverse(h.alignment.begin(), h.alignment.end());
  std::reverse(h.attention.begin(), h.attention.end());
  h.length = s.length - s.forced();
  h.log_probability = from.log_probability;
  if (s.options.terms) h.missing_terms = s.options.terms->missing(from.terms);
  h.score = from.log_probability;
  if (s.options.word_penalty != 0) h.score -= s.options.word_penalty * static_cast<double>(h.length);
  h.score /= length_penalty(s.options, h.length);
  if (s.covers()) h.score += s.options.coverage_penalty * s.log_coverage(from.row);
  s.add_finished(std::move(h));
}

}  // namespace starling
