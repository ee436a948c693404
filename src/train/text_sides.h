// A text that a model is tuned or measured on, the wrong way round: it has as many lines on both sides as the right one, and its scores
// say nothing. The model itself tells which side it would rather translate.
#pragma once

#include <span>
#include <string>

#include "decode/model_directory.h"

namespace starling {

// A sentence for people when both sides are one file, or when the model gives the sources, as translations of the targets, far more
// probability than the other way round (in nats a token, of the first 20 pairs that are neither short nor long); else empty.
std::string doubt_about_sides(Model& model, const Vocabularies& vocabularies, const std::string& source, const std::string& target,
                              std::span<const std::string> sources, std::span<const std::string> targets);

}  // namespace starling
