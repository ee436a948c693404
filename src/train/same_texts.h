// Texts of a configuration that are one and the same file: nothing in them is wrong, but what comes of it is worth nothing.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace starling {

// Whether both are names of one file; files that do not exist are equal to none.
bool same_file(const std::string& a, const std::string& b);

// A sentence for each corpus whose sides are one file, and for validation text that is a file of the training text. Links are followed.
std::vector<std::string> same_texts(const Config& config);

}  // namespace starling
