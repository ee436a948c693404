// What the command line says of a model.
#pragma once

#include <optional>
#include <string>

namespace starling {

// A model's direction.
struct Direction {
  std::string source, target;
};

// A model as the command line names it: "DIR", or with its direction "en-de=DIR", "zh-Hant:en=DIR".
struct ModelSource {
  std::optional<Direction> direction;  // else the model's own
  std::string path;
};
// ConfigError when what stands before '=' is no direction.
ModelSource parse_model_source(const std::string& text);

}  // namespace starling
