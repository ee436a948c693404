// Finds the model that a client means, since clients often spell language codes differently from the models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/api.h"

namespace starling {

// How a text in one language gets into the language that a client asks for.
struct Route {
  Direction direction;     // of the model
  bool unchanged = false;  // both languages are the same: the text is its own translation, without a model
};

// Returns the model from `source` to `target` whose codes are nearest to those requested (language_distance). Throws ApiError 400 if a
// language is unknown, no model has both, or several match equally well.
Route route_between(std::span<const Direction> models, const std::string& source, const std::string& target);

// Returns the models' codes that are nearest to the requested one: none, one, or several that are equally near.
std::vector<std::string> nearest_languages(std::span<const std::string> codes, const std::string& asked);
// Returns the single nearest code, else throws ApiError 400.
std::string nearest_language(std::span<const std::string> codes, const std::string& asked);

// Returns the languages that models translate into `target`, which is a code of a model.
std::vector<std::string> sources_into(std::span<const Direction> models, const std::string& target);

}  // namespace starling
