// Finds the model that a client means, since clients often spell language codes differently from the models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/api.h"

namespace starling {

// How a text in one language gets into the language that a client asks for: by one model or, through another language, by two.
struct Route {
  std::vector<Direction> legs;  // directions of models; none if the languages are the same: the text is its own translation
  bool unchanged() const { return legs.empty(); }
};

// Returns the model from `source` to `target` whose codes are nearest to those requested (language_distance). If there is none, returns two
// models that meet in the first of the `pivots` that has such. Throws ApiError 400 if a language is unknown, no models lead from one to the
// other, or several match equally well.
Route route_between(std::span<const Direction> models, const std::string& source, const std::string& target,
                    std::span<const std::string> pivots = {});

// Returns the directions of the models, and behind them those that only two models with a pivot between them reach.
std::vector<Direction> reachable(std::span<const Direction> models, std::span<const std::string> pivots);

// Returns the models' codes that are nearest to the requested one: none, one, or several that are equally near.
std::vector<std::string> nearest_languages(std::span<const std::string> codes, const std::string& asked);
// Returns the single nearest code, else throws ApiError 400.
std::string nearest_language(std::span<const std::string> codes, const std::string& asked);

// Returns the languages of directions into `target`, which is a code of a model.
std::vector<std::string> sources_into(std::span<const Direction> models, const std::string& target);

// Returns the possible languages of a text if the client does not know its language: those that can be translated into the target, and the
// target, since the text may need no translation.
std::vector<std::string> possible_languages(std::span<const Direction> directions, const std::string& target);

}  // namespace starling
