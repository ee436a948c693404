// Which model a client means: the codes that it sends are often not spelled as those of the models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/api.h"

namespace starling {

// What becomes of a text in one language for a client who asks for another.
struct Route {
  Direction direction;     // of the model
  bool unchanged = false;  // both are the same language: the text is its own translation, and there is no model
};

// The model from `source` to `target`, whose codes are the nearest to those asked for (language_distance). ApiError 400 where a language is
// unknown, where no model has both, and where several do equally well.
Route route_between(std::span<const Direction> models, const std::string& source, const std::string& target);

// The codes of models that are nearest to the one asked for: none, one, or several that are equally near.
std::vector<std::string> nearest_languages(std::span<const std::string> codes, const std::string& asked);
// The only one of them, else ApiError 400.
std::string nearest_language(std::span<const std::string> codes, const std::string& asked);

// The languages that models translate from into `target`, a code of a model.
std::vector<std::string> sources_into(std::span<const Direction> models, const std::string& target);

}  // namespace starling
