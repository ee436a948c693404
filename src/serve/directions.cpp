#include "serve/directions.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "text/language_match.h"

namespace starling {
namespace {

std::vector<std::string> nearest_codes(std::span<const std::string> codes, const std::string& asked, int farthest) {
  std::vector<std::string> best;
  for (const std::string& code : codes) {
    const auto distance = language_distance(asked, code);
    if (!distance || *distance > farthest) continue;
    if (*distance < farthest) best.clear();
    farthest = *distance;
    if (std::find(best.begin(), best.end(), code) == best.end()) best.push_back(code);
  }
  return best;
}

ApiError not_supported(const std::string& asked, const std::vector<std::string>& several = {}) {
  return {400, several.empty() ? fmt::format("{} is not supported", asked)
                               : fmt::format("{} is not supported; send {}", asked, fmt::join(several, " or "))};
}

std::vector<Direction> nearest_directions(std::span<const Direction> models, const std::string& source, const std::string& target) {
  std::vector<Direction> best;
  int least = 2 * kSameLanguageOnly;
  for (const Direction& d : models) {
    const auto from = language_distance(source, d.source), to = language_distance(target, d.target);
    if (!from || !to || *from + *to > least) continue;
    if (*from + *to < least) best.clear();
    least = *from + *to;
    best.push_back(d);
  }
  return best;
}

}  // namespace

Route route_between(std::span<const Direction> models, const std::string& source, const std::string& target) {
  const std::vector<std::string> codes = languages_of(models);
  for (const std::string& asked : {source, target})
    if (nearest_languages(codes, asked).empty()) throw not_supported(asked);
  const std::vector<Direction> best = nearest_directions(models, source, target);
  // Text that is in the target language already needs no model, unless one exists for it, for example into plain language.
  const bool within = std::any_of(best.begin(), best.end(), [](const Direction& d) { return same_language(d.source, d.target); });
  if (comparable_language(source) == comparable_language(target) && !within) return {{source, target}, true};
  if (best.size() == 1) return {best.front(), false};
  if (best.size() > 1) {
    std::vector<std::string> pairs;
    for (const Direction& d : best) pairs.push_back(fmt::format("{} to {}", d.source, d.target));
    throw ApiError(400, fmt::format("there are several models from {} to {}; send {}", source, target, fmt::join(pairs, " or ")));
  }
  // Two regional codes can mean one language of the models, such as en-US and en-GB if the models only have en.
  const auto from = nearest_codes(codes, source, kSameLanguageOnly - 1), to = nearest_codes(codes, target, kSameLanguageOnly - 1);
  if (from.size() == 1 && from == to) return {{source, target}, true};
  throw ApiError(400, fmt::format("{} ({}) is not available as a target language from {} ({})", language_name(target), target,
                                  language_name(source), source));
}

std::vector<std::string> nearest_languages(std::span<const std::string> codes, const std::string& asked) {
  return nearest_codes(codes, asked, kSameLanguageOnly);
}

std::string nearest_language(std::span<const std::string> codes, const std::string& asked) {
  const std::vector<std::string> best = nearest_languages(codes, asked);
  if (best.size() != 1) throw not_supported(asked, best);
  return best.front();
}

std::vector<std::string> sources_into(std::span<const Direction> models, const std::string& target) {
  std::vector<std::string> all;
  for (const Direction& d : models)
    if (same_language(d.target, target)) all.push_back(d.source);
  return all;
}

}  // namespace starling
