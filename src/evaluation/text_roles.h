// Detects texts in the wrong role: one file as source and target, training text as validation text, swapped sides. Nothing is wrong with
// the texts themselves, but the results would be worthless.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/model_directory.h"
#include "settings/config.h"
#include "storage/outputs.h"

namespace starling {

// Returns whether both names refer to the same file; false for files that do not exist.
bool same_file(const std::string& a, const std::string& b);

// Returns every text that a configuration names, by its key; "" for keys that are not set.
std::vector<NamedPath> named_texts(const Config& config);

// Returns a sentence for each corpus whose two sides are one file, and for validation text that is also training text. Links are followed.
std::vector<std::string> same_texts(const Config& config);

// Returns a sentence for people if both sides are one file, or if the model considers the sources as translations of the targets far more
// probable than the reverse (in nats per token, on the first 20 pairs that are neither short nor long); otherwise "". `tag` stands in front
// of what is taken as source.
std::string doubt_about_sides(Model& model, const Vocabularies& vocabularies, const std::string& source, const std::string& target,
                              std::span<const std::string> sources, std::span<const std::string> targets,
                              std::span<const int32_t> tag = {});

}  // namespace starling
