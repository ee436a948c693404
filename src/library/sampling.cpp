#include "decode/sampling.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "decode/framing.h"
#include "decode/search_sentence.h"
#include "library/impl.h"

namespace starling {
namespace {

constexpr int64_t kSampledRows = 256;  // samples drawn at once

SamplingOptions sampling_of(const v0::Sampling& asked, const SearchOptions& search) {
  if (search.alignment || search.attention || search.repetition_penalty != 1 || search.prefix_bias > 0 || !search.end_ids.empty())
    throw ConfigError(
        "sampling works without alignment, attention, repetition_penalty, prefix_bias and end_tokens; leave them out, or sampling");
  return {.samples = search.n_best,
          .max_length_factor = search.max_length_factor,
          .max_length_offset = search.max_length_offset,
          .allow_unknown = search.allow_unknown,
          .key = asked.seed,
          .top_k = asked.top_k,
          .temperature = asked.temperature,
          .prefix = search.target_prefix_ids,
          .forbidden = search.forbidden(),
          .min_length = search.min_length,
          .blank = search.blank_ids,
          .top_p = asked.top_p};
}

Hypothesis drawn_hypothesis(std::vector<int32_t> tokens, std::vector<float> scores, const SearchOptions& search, int32_t end) {
  Hypothesis h;
  h.length = std::ssize(tokens);
  if (!tokens.empty() && tokens.back() == end) {
    h.end = end;
    tokens.pop_back();
  }
  h.tokens = std::move(tokens);
  h.log_probabilities = std::move(scores);
  h.log_probability = std::accumulate(h.log_probabilities.begin(), h.log_probabilities.end(), 0.0);
  h.score = h.log_probability / length_penalty(search, std::max<int64_t>(h.length, 1));
  return h;
}

}  // namespace

std::vector<v0::Translation> v0::Translator::Impl::sampled(Strings sentences, const TranslateOptions& options, SentenceForm form) {
  Stopping stopping(options.stop);
  const SearchOptions search = search_of(options);
  SamplingOptions sampling = sampling_of(*options.sampling, search);
  const std::vector<bool> were_cut = cut(sentences, options, search, form, stopping);
  const Vocabulary& target = vocabularies().target();
  std::vector<Translation> translations(sentences.size());
  const auto draw = [&](size_t begin, size_t end, const std::function<void()>& check) {
    PackedTokens sources;
    std::vector<int64_t> which;
    for (size_t i = begin; i < end; ++i) {
      bool cut_again = false;
      constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
      const auto ids_of = form == SentenceForm::text ? ::starling::source_tokens : ::starling::source_of_pieces;
      const std::vector<int32_t> ids = ids_of(sentences[i], vocabularies().source(), search, kAll, cut_again);
      if (ids.empty()) continue;  // blank
      sources.append(ids.data(), ids.data() + ids.size());
      which.push_back(static_cast<int64_t>(i));
    }
    std::vector<std::vector<std::vector<int32_t>>> so_far(which.size(), std::vector<std::vector<int32_t>>(search.n_best));
    if (options.on_token)
      sampling.told = [&](const DrawnToken& t) {
        std::vector<int32_t>& tokens = so_far[t.sentence][t.sample];
        tokens.push_back(t.token);
        return options.on_token(step_of(which[t.sentence], t.sample, tokens, {t.token, t.log_probability, t.last}));
      };
    std::vector<SampleScores> scores;
    std::vector<Samples> samples =
        sample_translations(*loaded_.model, loaded_.model->vocabulary(), sources, which, sampling, &scores, check);
    for (size_t b = 0; b < which.size(); ++b) {
      Candidates candidates;
      for (size_t k = 0; k < samples[b].size(); ++k) {
        ::starling::Hypothesis h = drawn_hypothesis(std::move(samples[b][k]), std::move(scores[b][k]), search, target.eos());
        std::string text = target.decode(h.tokens);
        candidates.push_back({std::move(text), std::move(h)});
      }
      std::stable_sort(candidates.begin(), candidates.end(),
                       [](const PartTranslation& a, const PartTranslation& b) { return a.hypothesis.score > b.hypothesis.score; });
      translations[which[b]] = translation_of(candidates, were_cut[which[b]], nullptr, form, options.confidence);
    }
  };
  in_own_thread(stopping, [&](const std::atomic<bool>& given_up) {
    const std::lock_guard lock(model_);
    const auto check = [&] {
      if (given_up) throw cancelled();
    };
    const auto at_once = static_cast<size_t>(std::max<int64_t>(1, kSampledRows / search.n_best));
    for (size_t begin = 0; begin < sentences.size(); begin += at_once) draw(begin, std::min(begin + at_once, sentences.size()), check);
  });
  for (Translation& t : translations)
    if (t.hypotheses.empty()) t.hypotheses.emplace_back();
  return translations;
}

}  // namespace starling
