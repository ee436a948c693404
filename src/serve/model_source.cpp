#include "serve/model_source.h"

#include <algorithm>

#include "base/error.h"
#include "text/language_match.h"

namespace starling {

bool same_direction(const Direction& a, const Direction& b) {
  return same_language(a.source, b.source) && same_language(a.target, b.target);
}

const Direction* common_direction(const std::vector<Direction>& a, const std::vector<Direction>& b) {
  for (const Direction& d : a)
    if (std::any_of(b.begin(), b.end(), [&](const Direction& other) { return same_direction(d, other); })) return &d;
  return nullptr;
}

std::string direction_text(const std::vector<Direction>& directions) {
  std::string text;
  for (const Direction& d : directions) text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", d.source, d.target);
  return text;
}

std::vector<Direction> served_directions(const ModelSource& source, const Languages& own) {
  if (source.direction) return {*source.direction};
  std::vector<Direction> all;
  for (const std::string& direction : own.directions) {
    const auto [from, to] = parse_direction(direction, source.path);
    all.push_back({from, to});
  }
  if (all.empty() && !own.source.empty() && !own.target.empty()) all.push_back({own.source, own.target});
  if (all.empty()) throw ConfigError(fmt::format("{0}: the model does not name its languages; give them: --model en-de={0}", source.path));
  return all;
}

ModelSource parse_model_source(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string before = text.substr(0, equals);
  if (equals == std::string::npos || before.find('/') != std::string::npos) return {.direction = std::nullopt, .path = text};
  const size_t colon = before.find(':'), cut = colon == std::string::npos ? before.find('-') : colon;
  Direction d;
  if (cut != std::string::npos) d = {before.substr(0, cut), before.substr(cut + 1)};
  const bool one_hyphen = colon != std::string::npos || before.find('-', cut + 1) == std::string::npos;
  if (!is_language_code(d.source) || !is_language_code(d.target) || !one_hyphen)
    throw ConfigError(fmt::format(
        "--model {}: '{}' is not a language direction; write en-de=DIR, zh-Hant:en=DIR for longer codes, or ./DIR for a path with '='",
        text, before));
  return {.direction = d, .path = text.substr(equals + 1)};
}

}  // namespace starling
