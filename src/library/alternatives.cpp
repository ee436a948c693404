// Alternatives for what follows a target prefix: first the most probable tokens that may come next, by a search of length 1, then for each
// of them a translation that begins with the prefix and the token.
#include <algorithm>
#include <cmath>

#include "library/impl.h"

namespace starling {
namespace {

struct Alternative {
  size_t sentence;
  Hypothesis hypothesis;  // the first token, then all of it
  int64_t number = 0;     // of the request for the rest
  std::future<Scheduler::Outcome> rest{};
};

// Adds what follows the first token.
void append(Hypothesis& h, const Hypothesis& rest, size_t prefix) {
  h.tokens.insert(h.tokens.end(), rest.tokens.begin(), rest.tokens.end());
  h.log_probabilities.insert(h.log_probabilities.end(), rest.log_probabilities.begin(), rest.log_probabilities.end());
  h.alignment.insert(h.alignment.end(), rest.alignment.begin(), rest.alignment.end());
  if (!rest.attention.empty())  // it has the prefix and the first token once more
    h.attention.insert(h.attention.end(), rest.attention.begin() + static_cast<ptrdiff_t>(prefix) + 1, rest.attention.end());
  h.length += rest.length;
  h.log_probability += rest.log_probability;
  h.score += rest.score;
  h.end = rest.end;
}

SearchOptions search_for_first_tokens(const SearchOptions& search) {
  SearchOptions first = search;
  first.beam = search.n_best;
  first.max_length_factor = 0, first.max_length_offset = 1;
  first.length_penalty = first.word_penalty = first.coverage_penalty = first.prune_threshold = 0;
  first.min_length = std::max<int64_t>(search.min_length, 1);
  return first;
}

}  // namespace

std::vector<v0::Translation> v0::Translator::Impl::alternatives(Strings sentences, const TranslateOptions& options, SentenceForm form) {
  Stopping stopping(options.stop);
  TranslateOptions without_limit = options;  // as many alternatives as wanted, however narrow the searches for the rest are
  if (options.beam) without_limit.beam = std::max(*options.beam, options.n_best);
  SearchOptions search = search_of(without_limit);
  if (search.prefix_bias > 0 || options.sampling)
    throw ConfigError("alternatives need a prefix that is forced; leave out prefix_bias and sampling, or alternatives");
  const std::vector<bool> were_cut = cut(sentences, options, search, form, stopping);
  int64_t number = 0;
  auto expansion = this->search(sentences, search_for_first_tokens(search), form, number);
  Scheduler::Outcome first = stopping.wait(expansion, [&] { requests_.cancel(number); });
  if (first.end != Scheduler::End::done) std::rethrow_exception(first.cause);

  const size_t prefix = search.target_prefix_ids.size();
  if (options.beam) search.beam = *options.beam;
  search.n_best = 1;
  search.max_length_offset -= 1;
  search.min_length = std::max<int64_t>(0, search.min_length - 1);
  const bool has_rest = search.max_length_offset > 0 || search.max_length_factor > 0;
  std::vector<Alternative> all;
  for (size_t i = 0; i < first.translations.size(); ++i)
    for (PartTranslation& c : first.translations[i])
      if (!c.hypothesis.tokens.empty() && std::exp(c.hypothesis.log_probability) >= options.min_alternative_probability)
        all.push_back({.sentence = i, .hypothesis = std::move(c.hypothesis)});
  const auto give_up = [&] {
    for (const Alternative& a : all) requests_.cancel(a.number);
  };
  if (has_rest)
    for (Alternative& a : all) {
      SearchOptions rest = search;
      rest.target_prefix_ids.push_back(a.hypothesis.tokens.front());
      a.rest = this->search({sentences[a.sentence]}, rest, form, a.number);
    }
  std::vector<Candidates> candidates(sentences.size());
  for (Alternative& a : all) {
    if (has_rest) {
      const Scheduler::Outcome outcome = stopping.wait(a.rest, give_up);
      if (outcome.end != Scheduler::End::done) std::rethrow_exception(outcome.cause);
      if (!outcome.translations[0].empty()) append(a.hypothesis, outcome.translations[0].front().hypothesis, prefix);
    }
    std::string text = vocabularies().target().decode(a.hypothesis.tokens);
    candidates[a.sentence].push_back({std::move(text), std::move(a.hypothesis)});
  }
  std::vector<Translation> translations;
  for (size_t i = 0; i < candidates.size(); ++i)
    translations.push_back(translation_of(candidates[i], were_cut[i], search.alignment || search.attention ? &sentences[i] : nullptr, form,
                                          options.confidence));
  return translations;
}

}  // namespace starling
