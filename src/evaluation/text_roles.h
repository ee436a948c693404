// Texts in a role that is not theirs: one file as source and target, training text as validation text, sides that are swapped. Nothing in
// them is wrong, but what comes of it is worth nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/model_directory.h"
#include "settings/config.h"
#include "storage/outputs.h"

namespace starling {

// Whether both are names of one file; files that do not exist are equal to none.
bool same_file(const std::string& a, const std::string& b);

// Every text that a configuration names, by its key; "" where it has none.
std::vector<NamedPath> named_texts(const Config& config);

// A sentence for each corpus whose sides are one file, and for validation text that is a file of the training text. Links are followed.
std::vector<std::string> same_texts(const Config& config);

// A sentence for people when both sides are one file, or when the model gives the sources, as translations of the targets, far more
// probability than the other way round (in nats a token, of the first 20 pairs that are neither short nor long); else empty.
std::string doubt_about_sides(Model& model, const Vocabularies& vocabularies, const std::string& source, const std::string& target,
                              std::span<const std::string> sources, std::span<const std::string> targets);

}  // namespace starling
