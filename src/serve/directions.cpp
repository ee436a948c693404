#include "serve/directions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/push_once.h"
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
    push_once(best, code);
  }
  return best;
}

ApiError not_supported(const std::string& asked, const std::vector<std::string>& several = {}) {
  return {400, several.empty() ? fmt::format("{} is not supported", asked)
                               : fmt::format("{} is not supported; send {}", asked, fmt::join(several, " or "))};
}

// Returns the distance from a direction to what is asked for; nothing if it leads elsewhere.
std::optional<int> distance(const Direction& d, const std::string& source, const std::string& target) {
  const auto from = language_distance(source, d.source), to = language_distance(target, d.target);
  return from && to ? std::make_optional(*from + *to) : std::nullopt;
}

// Adds a route to the best so far, or replaces them, unless they are better.
void offer(Route route, int distance, std::vector<Route>& best, int& least) {
  if (distance > least) return;
  if (distance < least) best.clear();
  least = distance;
  best.push_back(std::move(route));
}

std::vector<Route> direct_routes(std::span<const Direction> models, const std::string& source, const std::string& target) {
  std::vector<Route> best;
  int least = 2 * kSameLanguageOnly;
  for (const Direction& d : models)
    if (const auto far = distance(d, source, target)) offer({{d}}, *far, best, least);
  return best;
}

std::vector<Route> routes_through(std::span<const Direction> models, const std::string& source, const std::string& target,
                                  const std::string& pivot) {
  std::vector<Route> best;
  int least = 5 * kSameLanguageOnly;
  for (const Direction& first : models) {
    const auto there = distance(first, source, pivot);
    if (!there) continue;
    for (const Direction& second : models) {
      const auto on = distance(second, pivot, target), between = language_distance(first.target, second.source);
      const bool back = comparable_language(first.source) == comparable_language(second.target);
      if (on && between && !back) offer({{first, second}}, *there + *on + *between, best, least);
    }
  }
  return best;
}

std::string text_of(const Route& route) {
  std::string text = fmt::format("{} to {}", route.legs.front().source, route.legs.front().target);
  for (const Direction& leg : std::span(route.legs).subspan(1)) text += fmt::format(", {} to {}", leg.source, leg.target);
  return text;
}

ApiError ambiguous(std::span<const Route> routes, const std::string& source, const std::string& target) {
  std::vector<std::string> pairs;
  for (const Route& route : routes) pairs.push_back(text_of(route));
  return {400, fmt::format("there are several models from {} to {}; send {}", source, target, fmt::join(pairs, " or "))};
}

}  // namespace

Route route_between(std::span<const Direction> models, const std::string& source, const std::string& target,
                    std::span<const std::string> pivots) {
  const std::vector<std::string> codes = languages_of(models);
  for (const std::string& asked : {source, target})
    if (nearest_languages(codes, asked).empty()) throw not_supported(asked);
  const std::vector<Route> best = direct_routes(models, source, target);
  // Text that is in the target language already needs no model, unless one exists for it, for example into plain language.
  const bool within =
      std::any_of(best.begin(), best.end(), [](const Route& r) { return same_language(r.legs.front().source, r.legs.front().target); });
  if (comparable_language(source) == comparable_language(target) && !within) return {};
  if (best.size() == 1) return best.front();
  if (best.size() > 1) throw ambiguous(best, source, target);
  // Two regional codes can mean one language of the models, such as en-US and en-GB if the models only have en.
  const auto from = nearest_codes(codes, source, kSameLanguageOnly - 1), to = nearest_codes(codes, target, kSameLanguageOnly - 1);
  if (from.size() == 1 && from == to) return {};
  for (const std::string& pivot : pivots) {
    const std::vector<Route> through = routes_through(models, source, target, pivot);
    if (through.size() > 1) throw ambiguous(through, source, target);
    if (!through.empty()) return through.front();
  }
  throw ApiError(400, fmt::format("{} ({}) is not available as a target language from {} ({})", language_name(target), target,
                                  language_name(source), source));
}

std::vector<Direction> reachable(std::span<const Direction> models, std::span<const std::string> pivots) {
  std::vector<Direction> all(models.begin(), models.end());
  for (const std::string& pivot : pivots)
    for (const Direction& first : models) {
      if (!language_distance(pivot, first.target)) continue;
      for (const Direction& second : models) {
        const Direction through{first.source, second.target};
        if (!language_distance(pivot, second.source) || !language_distance(first.target, second.source)) continue;
        if (comparable_language(through.source) == comparable_language(through.target)) continue;
        push_once(all, through);
      }
    }
  return all;
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

std::vector<std::string> possible_languages(std::span<const Direction> directions, const std::string& target) {
  const std::vector<std::string> all = languages_of(directions);
  std::vector<std::string> possible = sources_into(directions, target);
  if (possible.empty())
    std::copy_if(all.begin(), all.end(), std::back_inserter(possible), [&](const std::string& l) { return !same_language(l, target); });
  possible.push_back(target);
  return possible;
}

}  // namespace starling
