// Parses the command line's description of a model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/languages.h"

namespace starling {

// A model's language direction.
struct Direction {
  std::string source, target;
  bool operator==(const Direction&) const = default;
};
bool same_direction(const Direction& a, const Direction& b);
// Whether lists have a direction in common; that direction, or null.
const Direction* common_direction(const std::vector<Direction>& a, const std::vector<Direction>& b);
// "en to de, en to fr".
std::string direction_text(const std::vector<Direction>& directions);

// A model as the command line gives it: "DIR", or with its direction "en-de=DIR", "zh-Hant:en=DIR".
struct ModelSource {
  std::optional<Direction> direction;  // if not set, the model's own
  std::string path;
  bool optional = false;  // left out if it cannot be served, such as one of a folder of packages
};
// Returns the directions of a model that says these languages: the source's own, else all of the model's. Throws ConfigError if there are
// none.
std::vector<Direction> served_directions(const ModelSource& source, const Languages& own);

// Throws ConfigError if the text before '=' is not a direction.
ModelSource parse_model_source(const std::string& text);

}  // namespace starling
