#include "replica/refine.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "backend/dropout.h"
#include "base/error.h"
#include "data/batches.h"
#include "decode/search_need.h"
#include "metrics/metrics.h"

namespace starling {
namespace {

constexpr uint64_t kSamplingSite = 0x73616d706c65;  // separates this use of the run's seed from the dropout sites
// Limits of what is decoded at once: enough for full speed, while logits and caches stay small. kTokens limits rows times maximal length.
constexpr int64_t kRows = 1024, kTokens = 16384;

std::span<const int32_t> sentence(const PackedTokens& side, int64_t b) {
  const auto begin = static_cast<size_t>(side.offsets[static_cast<size_t>(b)]);
  return std::span(side.tokens).subspan(begin, static_cast<size_t>(side.offsets[static_cast<size_t>(b) + 1]) - begin);
}

std::span<const int32_t> without_end(std::span<const int32_t> tokens, int32_t end) {
  return !tokens.empty() && tokens.back() == end ? tokens.first(tokens.size() - 1) : tokens;
}

// Adds the samples of source b to the batch under construction and to the sums.
void add_source(const Batch& share, int64_t b, const Samples& samples, const RefineOptions& options, int32_t end, Batch& weighted,
                Refinement& sums) {
  const std::span<const int32_t> source = sentence(share.source, b), reference = without_end(sentence(share.target, b), end);
  std::vector<double> rewards;
  for (const auto& tokens : samples) rewards.push_back(sentence_gleu(without_end(tokens, end), reference));
  sums.reward = std::accumulate(rewards.begin(), rewards.end(), sums.reward);
  sums.samples += static_cast<double>(samples.size());
  Samples distinct = samples;
  std::sort(distinct.begin(), distinct.end());
  sums.distinct += static_cast<double>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
  for (const WeightedSample& s : weigh_samples(samples, rewards, options.baseline)) {
    weighted.source.append(source.data(), source.data() + source.size());
    weighted.target.append(s.tokens.data(), s.tokens.data() + s.tokens.size());
    weighted.weights.push_back(static_cast<float>(s.weight));
    weighted.sample_ids.push_back(share.sample_ids[static_cast<size_t>(b)]);
  }
}

SamplingOptions sampling_options(const RefineOptions& options, uint64_t key) {
  return {options.samples, options.max_length_factor, options.max_length_offset, options.allow_unknown, key};
}

int64_t rows_that_fit(int64_t limit) { return std::clamp<int64_t>(kTokens / limit, 1, kRows); }

// Draws the samples of sources `begin` to `end` of the share; those of a single source in parts, if they do not fit at once.
std::vector<Samples> draw(Model& model, const Batch& share, int64_t begin, int64_t end, SamplingOptions options, int64_t at_once) {
  PackedTokens sources;
  for (int64_t b = begin; b < end; ++b) {
    const auto tokens = sentence(share.source, b);
    sources.append(tokens.data(), tokens.data() + tokens.size());
  }
  const auto ids = std::span(share.sample_ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  std::vector<Samples> all(static_cast<size_t>(end - begin));
  const int64_t count = options.samples, part = end - begin == 1 ? at_once : count;
  for (options.first = 0; options.first < count; options.first += part) {
    options.samples = std::min(part, count - options.first);
    std::vector<Samples> drawn = sample_translations(model, model.vocabulary(), sources, ids, options);
    for (size_t b = 0; b < all.size(); ++b) std::move(drawn[b].begin(), drawn[b].end(), std::back_inserter(all[b]));
  }
  return all;
}

// Sources `begin` to `end` of a share, whose samples are drawn at once, and the longest that one of them may get.
struct Group {
  int64_t begin, end, longest;
};

std::vector<Group> groups_of(const Batch& share, const SamplingOptions& options) {
  const int64_t sentences = share.source.sentences();
  const auto limit = [&](int64_t b) {
    return length_limit(options.max_length_factor, options.max_length_offset, static_cast<double>(sentence(share.source, b).size()));
  };
  std::vector<Group> groups;
  for (int64_t begin = 0, end = 0; begin < sentences; begin = end) {
    int64_t longest = limit(begin);
    for (end = begin + 1; end < sentences; ++end) {
      const int64_t longer = std::max(longest, limit(end));
      if ((end + 1 - begin) * options.samples > rows_that_fit(longer)) break;
      longest = longer;
    }
    groups.push_back({begin, end, longest});
  }
  return groups;
}

}  // namespace

std::vector<WeightedSample> weigh_samples(const Samples& samples, std::span<const double> rewards, RewardBaseline baseline) {
  CHECK(samples.size() == rewards.size() && samples.size() > 1, "{} samples, {} rewards", samples.size(), rewards.size());
  const auto m = static_cast<double>(samples.size());
  const double sum = std::accumulate(rewards.begin(), rewards.end(), 0.0);
  std::vector<WeightedSample> weighted;
  std::map<std::vector<int32_t>, size_t> places;
  for (size_t k = 0; k < samples.size(); ++k) {
    const double base = baseline == RewardBaseline::mean ? sum / m : (sum - rewards[k]) / (m - 1);
    const auto [place, added] = places.try_emplace(samples[k], weighted.size());
    if (added) weighted.push_back({samples[k], 0});
    weighted[place->second].weight += (rewards[k] - base) / m;
  }
  std::erase_if(weighted, [](const WeightedSample& s) { return std::abs(s.weight) < 1e-12; });
  return weighted;
}

double sampling_bytes(Model& model, const Batch& share, const RefineOptions& options) {
  const int64_t activation_bytes = size_of(model.parameters().backend().activation());
  int64_t most = 0;
  for (const auto& [begin, end, longest] : groups_of(share, sampling_options(options, 0))) {
    const int64_t rows = std::min((end - begin) * options.samples, rows_that_fit(longest));
    const int64_t tokens = share.source.offsets[static_cast<size_t>(end)] - share.source.offsets[static_cast<size_t>(begin)];
    const int64_t length = std::min(longest, longest_sentence(model.config())), each = rows / (end - begin);
    most = std::max(most, sampling_need(model.config(), model.vocabulary(), rows, each, length, tokens, activation_bytes).total());
  }
  return static_cast<double>(most);
}

Refinement sample_refinement(Model& model, const Batch& share, const RefineOptions& options, uint64_t seed, int64_t update,
                             int64_t micro_tokens) {
  Refinement result;
  Batch weighted;
  weighted.epoch = share.epoch;
  weighted.index = share.index;
  const SamplingOptions sampling = sampling_options(options, dropout_key(seed, static_cast<uint64_t>(update), kSamplingSite));
  for (const auto& [begin, end, longest] : groups_of(share, sampling)) {
    const std::vector<Samples> samples = draw(model, share, begin, end, sampling, rows_that_fit(longest));
    for (int64_t b = begin; b < end; ++b)
      add_source(share, b, samples[static_cast<size_t>(b - begin)], options, model.vocabulary().end, weighted, result);
  }
  if (weighted.target.count() > 0) result.batches = split(weighted, micro_tokens);
  return result;
}

}  // namespace starling
