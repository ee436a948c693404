#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/start_threads.h"
#include "evaluation/pair_scores.h"
#include "library/impl.h"

namespace starling {
namespace {

constexpr int64_t kScoredTokens = 1000;  // target tokens scored at once, before looking whether the caller gives up

}  // namespace

void in_own_thread(Stopping& stopping, const std::function<void(const std::atomic<bool>& given_up)>& f) {
  std::atomic<bool> given_up = false;
  std::promise<void> promise;
  auto ended = promise.get_future();
  std::thread thread = start_thread("scoring and sampling", [&] {
    try {
      f(given_up);
      promise.set_value();
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  });
  try {
    stopping.wait(ended, [&] { given_up = true; });
  } catch (...) {
    thread.join();
    throw;
  }
  thread.join();
}

std::vector<EncodedPair> v0::Translator::Impl::encoded_pairs(const Strings& sources, const Strings& targets, const SearchOptions& search,
                                                             SentenceForm form, Stopping& stopping) const {
  if (sources.size() != targets.size())
    throw ConfigError(fmt::format("{} sources and {} targets; give one target for each source", sources.size(), targets.size()));
  require_utf8(sources, "source");
  require_utf8(targets, "target");
  const auto pair_of = form == SentenceForm::text ? framed_pair : framed_pair_of_pieces;
  const int64_t longest = longest_sentence(loaded_.description.config);
  std::vector<EncodedPair> pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    stopping.poll();
    std::string source = sources[i];
    if (form == SentenceForm::pieces && takes_given_end(source)) give_end(source);
    pairs.push_back(pair_of(vocabularies(), source, targets[i], search));
    if (const int64_t length = std::max(std::ssize(pairs[i].source), std::ssize(pairs[i].target)); length > longest)
      throw DataError(
          fmt::format("pair {}: a sentence has {} tokens, but the model has positions for only {}; split it", i, length, longest));
  }
  return pairs;
}

std::vector<v0::Score> v0::Translator::Impl::score(const Strings& sources, const Strings& targets, const TranslateOptions& options,
                                                   SentenceForm form) {
  Stopping stopping(options.stop);
  const SearchOptions search = search_of(options);
  const std::vector<EncodedPair> pairs = encoded_pairs(sources, targets, search, form, stopping);
  std::vector<std::vector<float>> all;
  in_own_thread(stopping, [&](const std::atomic<bool>& given_up) {
    const std::lock_guard lock(model_);
    const auto check = [&](int64_t) {
      if (given_up) throw cancelled();
    };
    check(0);
    all = pair_scores(*loaded_.model, pairs, search, kScoredTokens, check);
  });
  std::vector<Score> scores(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<int32_t>& target = pairs[i].target;
    const size_t given = target.size() - all[i].size();
    for (size_t t = 0; t < all[i].size(); ++t) {  // finite weights can still be too large to compute with
      if (!std::isfinite(all[i][t]))
        throw DataError(fmt::format("pair {}: the model gives a token the log-probability {}; use another checkpoint", i, all[i][t]));
      scores[i].tokens.push_back(vocabularies().target().token(target[given + t]));
      scores[i].log_probabilities.push_back(all[i][t]);
      scores[i].log_probability += all[i][t];
    }
  }
  return scores;
}

}  // namespace starling
