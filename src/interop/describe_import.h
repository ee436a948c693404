// What `starling import` prints.
#pragma once

#include <string>

#include "interop/imported_model.h"

namespace starling {

// What was found, what the model is, its notes, and what to do next with the directory.
std::string import_text(const ImportedModel& model, const std::string& directory);

}  // namespace starling
