// Texts of a configuration that are one and the same file: nothing in them is wrong, but what comes of it is worth nothing.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace starling {

// A sentence for each corpus whose sides are one file, and for validation text that is a file of the training text. Links are followed;
// files that do not exist are equal to none.
std::vector<std::string> same_texts(const Config& config);

}  // namespace starling
