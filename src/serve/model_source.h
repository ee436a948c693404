// Parses the command line's description of a model.
#pragma once

#include <optional>
#include <string>

namespace starling {

// A model's language direction.
struct Direction {
  std::string source, target;
  bool operator==(const Direction&) const = default;
};

// A model as the command line gives it: "DIR", or with its direction "en-de=DIR", "zh-Hant:en=DIR".
struct ModelSource {
  std::optional<Direction> direction;  // if not set, the model's own
  std::string path;
  bool optional = false;  // left out if it cannot be served, such as one of a folder of packages
};
// Throws ConfigError if the text before '=' is not a direction.
ModelSource parse_model_source(const std::string& text);

}  // namespace starling
