// The choice of continuations where a translation must contain terms. The beam is divided among hypotheses that have equally much of them:
// those that have most are not crowded out by those that avoid terms, which are likelier, and the other way round.
#include "decode/search_sentence.h"

namespace starling {

// Computes the scores of the tokens that go on with terms, most of which are not among the best of their rows.
void Search::find_term_scores(const OutputProduct& output) {
  term_scores_.clear();
  std::vector<int32_t> rows, tokens;
  for (const Sentence& s : sentences_) {
    if (!s.with_terms) continue;
    term_scores_.resize(token_.size());
    for (const Live& l : s.live) {
      tokens.clear();
      s.options.terms->append_next(l.terms, tokens);
      for (const int32_t token : tokens)
        if (allowed(s, l, token)) term_scores_[static_cast<size_t>(l.row)].emplace_back(token, 0.0f);
      if (!term_scores_[static_cast<size_t>(l.row)].empty()) rows.push_back(l.row);
    }
  }
  if (rows.empty()) return;
  constexpr size_t kTogether = 64;  // rows whose scores of all tokens are there at once
  Backend& backend = model_.parameters().backend();
  for (size_t first = 0; first < rows.size(); first += kTogether) {
    const std::vector<int32_t> part(rows.begin() + static_cast<ptrdiff_t>(first),
                                    rows.begin() + static_cast<ptrdiff_t>(std::min(first + kTogether, rows.size())));
    OutputProduct some = output;
    some.rows = std::ssize(part);
    some.x = Tensor({some.rows, output.x.columns()}, output.x.dtype(), backend.memory());
    backend.gather_rows(output.x, Ints(part, backend.memory()), some.x, Write::overwrite);
    const Tensor logits = logits_of(backend, some);
    for (int64_t i = 0; i < some.rows; ++i) {
      const std::vector<double> z = logits.rows(i, i + 1).to_doubles();
      const int32_t row = part[static_cast<size_t>(i)];
      const auto best = static_cast<size_t>(row * k_);
      const double log_sum = z[static_cast<size_t>(indices_[best])] - static_cast<double>(values_[best]);
      for (auto& [token, score] : term_scores_[static_cast<size_t>(row)])
        score = static_cast<float>(z[static_cast<size_t>(token)] - log_sum);
    }
  }
}

void Search::choose_with_terms(Sentence& s) {
  struct Option {
    int64_t progress;
    double log_probability;
    int32_t live, token;
    bool end;
  };
  const SearchOptions& o = s.options;
  const Terms& terms = *o.terms;
  const bool at_limit = ++s.length == s.limit;
  std::vector<Option> options;
  const auto add = [&](int32_t live, int32_t token, double score) {
    const Live& l = s.live[live];
    const bool end = ends(s, token);
    const Terms::State state = end ? l.terms : terms.after(l.terms, token);
    if (end && !terms.complete(state) && !s.may_always_end) return;
    options.push_back({terms.progress(state), l.log_probability + score, live, token, end});
  };
  const auto add_all = [&] {
    for (int32_t live = 0; live < std::ssize(s.live); ++live) {
      const Live& l = s.live[live];
      const auto& nearer = term_scores_[static_cast<size_t>(l.row)];
      for (const auto& [token, score] : nearer) add(live, token, score);
      for (int64_t rank = 0; rank < std::min(s.examined, k_); ++rank) {
        const auto at = static_cast<size_t>(l.row * k_ + rank);
        const int32_t token = indices_[at];
        if (std::none_of(nearer.begin(), nearer.end(), [&](const auto& each) { return each.first == token; }) && allowed(s, l, token) &&
            !terms.ends_too_early(l.terms, token))
          add(live, token, values_[at]);
      }
    }
  };
  add_all();
  if (options.empty()) {  // every other token is forbidden
    s.may_always_end = true;
    add_all();
  }
  std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    if (a.progress != b.progress) return a.progress > b.progress;
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.live != b.live ? a.live < b.live : a.token < b.token;
  });

  // Hypotheses that have all terms get two places, since one of them becomes the translation. The rest are dealt out to the groups of equal
  // progress, those with most progress first, until there are no more places or options.
  struct Group {
    size_t begin, end;
    int64_t live, places;  // live: options that do not end
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < options.size(); ++i) {
    if (i == 0 || options[i].progress != options[i - 1].progress) groups.push_back({i, i, 0, 0});
    groups.back().end = i + 1;
    groups.back().live += !options[i].end;
  }
  int64_t left = o.beam;
  const auto give = [&](Group& g) {
    if (left > 0 && g.places < std::max<int64_t>(g.live, 1)) ++g.places, --left;
  };
  if (!groups.empty() && options.front().progress == terms.longest()) give(groups.front()), give(groups.front());
  for (int64_t before = left + 1; left > 0 && left < before;) {
    before = left;
    for (Group& g : groups) give(g);
  }
  next_.clear();
  for (const Group& g : groups) {
    int64_t taken = 0;
    for (size_t i = g.begin; i < g.end && taken < g.places; ++i) {
      const Option& option = options[i];
      take(s, s.live[option.live], option.token, option.log_probability, option.end);
      taken += !option.end;
    }
  }
  std::stable_sort(next_.begin(), next_.end(), [](const Live& a, const Live& b) { return a.log_probability > b.log_probability; });
  if (at_limit) {
    for (const Live& l : next_) finish(s, l, nullptr);
    next_.clear();
  }
  // Hypotheses that lack terms only get less likely by them. So the search ends when none of them is better as it is.
  if (std::ssize(s.best_scores) == o.n_best && std::ssize(s.finished) >= s.enough && !next_.empty()) {
    const int64_t length = s.length - s.forced();
    const double score = (next_.front().log_probability - o.word_penalty * static_cast<double>(length)) / length_penalty(o, length);
    if (score <= s.best_scores.back()) next_.clear();
  }
  while (!next_.empty() && s.hopeless(next_.back().log_probability)) next_.pop_back();
  std::swap(s.live, next_);
}

}  // namespace starling
