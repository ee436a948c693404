#include "evaluation/text_roles.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/push_once.h"
#include "data/batches.h"
#include "evaluation/validation.h"

namespace starling {
namespace {

constexpr size_t kPairs = 20, kShortestRolePair = 3, kLongestRolePair = 100;  // tokens per side
constexpr double kMargin = 0.5;  // nats per token, so that a model that has learnt little raises no doubt

}  // namespace

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return !a.empty() && !b.empty() && std::filesystem::equivalent(a, b, error) && !error;
}

std::vector<NamedPath> named_texts(const Config& config) {
  std::vector<NamedPath> texts{{"valid.source", config.valid.source}, {"valid.target", config.valid.target}};
  for (const ValidSet& set : config.valid.sets) texts.insert(texts.end(), {{"valid.sets", set.source}, {"valid.sets", set.target}});
  for (const CorpusFiles& c : config.data.train)
    texts.insert(texts.end(), {{"data.source", c.source}, {"data.target", c.target}, {"data.tsv", c.tsv}});
  return texts;
}

std::vector<std::string> same_texts(const Config& config) {
  std::vector<std::string> lines;
  const std::vector<ValidSet> sets = config.valid.enabled() ? config.valid.texts() : std::vector<ValidSet>();
  for (const CorpusFiles& corpus : config.data.train) {
    if (same_file(corpus.source, corpus.target))
      push_once(lines, fmt::format("{} is both source and target of the training text, so the model learns to copy", corpus.source));
    for (const ValidSet& valid : sets)
      if (same_file(valid.source, corpus.source) || same_file(valid.target, corpus.target))
        push_once(
            lines,
            fmt::format("the validation text {} is also training text: its scores do not show how the model translates unseen text; hold "
                        "out some lines",
                        same_file(valid.source, corpus.source) ? valid.source : valid.target));
  }
  for (const ValidSet& valid : sets)
    if (same_file(valid.source, valid.target))
      push_once(lines,
                fmt::format("{} is both source and target of the validation text, so scores show how well the model copies", valid.source));
  return lines;
}

std::string doubt_about_sides(Model& model, const Vocabularies& v, const std::string& source, const std::string& target,
                              std::span<const std::string> sources, std::span<const std::string> targets, std::span<const int32_t> tag) {
  if (same_file(source, target))
    return fmt::format("{} is both --source and --target, so the scores tell how well the model copies", source);
  std::vector<EncodedPair> given, swapped;
  const auto usable = [](const EncodedPair& p) {
    return std::min(p.source.size(), p.target.size()) >= kShortestRolePair &&
           std::max(p.source.size(), p.target.size()) <= kLongestRolePair;
  };
  for (size_t i = 0; i < sources.size() && given.size() < kPairs; ++i) {
    EncodedPair one = encode_pair(v.source(), v.target(), sources[i], targets[i], tag);
    EncodedPair other = encode_pair(v.source(), v.target(), targets[i], sources[i], tag);
    if (usable(one) && usable(other)) {
      given.push_back(std::move(one));
      swapped.push_back(std::move(other));
    }
  }
  if (given.empty()) return "";
  const auto nats = [&](const std::vector<EncodedPair>& pairs) { return cross_entropy(model, make_batches(pairs, 1000)).per_token(); };
  const double as_given = nats(given), as_swapped = nats(swapped);
  if (!(as_swapped < as_given - kMargin)) return "";
  return fmt::format(
      "--source {} and --target {} seem to be swapped: the model's cross-entropy is {:.2f} nats per token as given, {:.2f} the other way "
      "round",
      source, target, as_given, as_swapped);
}

}  // namespace starling
