// The key model.for: programs that the model must be able to go to.
#pragma once

#include <span>

#include "settings/config.h"

namespace starling {

// Sets keys of the configuration, through its sections, to what the programs of model.for need. Throws ConfigError naming the keys that are
// given otherwise, or that two programs need otherwise.
void fit_to_programs(std::span<const ConfigSection> sections, Config& config);

// Returns one line about where models of this configuration can go.
std::string destinations_text(const Config& config);

}  // namespace starling
